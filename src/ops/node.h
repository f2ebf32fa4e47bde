#pragma once
// Glue to autograd: a Node holds what it needs as plain members, and lets go of it as soon as it was applied.
#include <memory>
#include <utility>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

namespace aitraining::ops {

// Makes `y` the output of a node of type N whose inputs are `inputs` (undefined ones are allowed); `fill` stores what
// backward needs. Does nothing when no gradient is asked for.
template <class N, class Fill>
void attach(at::Tensor& y, std::initializer_list<at::Tensor> inputs, Fill&& fill) {
  if (!at::GradMode::is_enabled()) return;
  bool needed = false;
  for (const auto& input : inputs) needed = needed || (input.defined() && input.requires_grad());
  if (!needed) return;
  auto node = std::shared_ptr<N>(new N(), torch::autograd::deleteNode);
  torch::autograd::edge_list edges;
  for (const auto& input : inputs) {
    edges.push_back(input.defined() ? torch::autograd::impl::gradient_edge(input) : torch::autograd::Edge());
  }
  node->set_next_edges(std::move(edges));
  fill(*node);
  torch::autograd::set_history(y, node);
}

}  // namespace aitraining::ops
