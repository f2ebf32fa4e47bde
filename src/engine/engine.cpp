#include "aitraining/engine/engine.h"

#include <cmath>

#include <torch/csrc/autograd/autograd.h>

#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"
#include "aitraining/ops/kernels.h"
#include "optimizer.h"
#include "policy.h"

namespace aitraining::engine {

Engine::Engine(ops::Chain& chain, comm::ProcessGroup& group, EngineOptions options)
    : chain_(chain), group_(group), options_(options), policy_(make_replicated_policy(group)) {
  for (auto& g : chain_.groups) {
    states_.push_back(std::make_unique<GroupState>());
    states_.back()->group = g.get();
    policy_->allocate(*states_.back(), options_);
  }
  unit_states_.resize(chain_.units.size());
  whole_after_.resize(chain_.units.size());
  for (auto& state : states_) {
    // Backward runs from the last unit to the first: a group's gradient is whole when its first user is done.
    bool first_use = state->group->trainable();
    for (size_t u = 0; u < chain_.units.size(); ++u) {
      const auto& used = chain_.units[u]->groups();
      if (std::find(used.begin(), used.end(), state->group) == used.end()) continue;
      unit_states_[u].push_back(state.get());
      if (first_use) whole_after_[u].push_back(state.get());
      first_use = false;
    }
  }
  for (const auto* g : chain_.units.front()->groups()) trains_input_ = trains_input_ || g->trainable();
  anchor_ = at::zeros({1}, at::TensorOptions().device(options_.device));
}

Engine::~Engine() {
  // Handles in the chain must not keep buffers alive beyond the engine.
  for (auto& g : chain_.groups) {
    g->compute.reset();
    g->grad.reset();
  }
}

void Engine::load(const ops::ParameterReader& reader, const std::function<bool(const ops::ParamGroup&)>& wanted) {
  for (auto& state : states_) {
    if (!wanted(*state->group)) continue;
    at::Tensor& owned = state->master.defined() ? state->master : state->group->compute;
    for (const auto& param : state->group->params()) {
      auto place = owned.narrow(0, param.offset - state->first_element, param.numel);
      if (place.is_cpu()) {
        reader(param, 0, place);
      } else {
        auto staged = at::empty({param.numel}, at::TensorOptions().dtype(place.scalar_type()));
        reader(param, 0, staged);
        place.copy_(staged);
      }
    }
    if (state->master.defined()) policy_->publish(*state);
  }
}

void Engine::begin_update() {
  for (auto& state : states_) {
    if (state->group->trainable()) state->group->begin_update();
  }
}

void Engine::gather(size_t unit) {
  for (GroupState* state : unit_states_[unit]) policy_->gather(*state);
}

void Engine::release(size_t unit) {
  for (GroupState* state : unit_states_[unit]) policy_->release(*state);
}

at::Tensor Engine::forward_unit(size_t unit, const at::Tensor& in, const ops::Batch& batch) {
  for (GroupState* state : unit_states_[unit]) policy_->wait_gathered(*state);
  return chain_.units[unit]->forward({in}, batch)[0];
}

double Engine::micro_step(const ops::Batch* batch, bool last) {
  if (batch != nullptr && batch->num_labels() > 0) return forward_backward(*batch, last);
  if (last) {
    for (size_t u = chain_.units.size(); u-- > 0;) reduce_after(u);
  }
  return 0;
}

// The graph is cut between units: each unit's input is a leaf, and backward of unit i starts from the gradient that
// unit i+1 left at its input. With recompute only these leaves live between the passes. The next unit's parameters are
// asked for before the current unit computes.
double Engine::forward_backward(const ops::Batch& batch, bool last) {
  const size_t units = chain_.units.size();
  std::vector<at::Tensor> inputs(units), outputs(units);
  at::Tensor x = anchor_;
  gather(0);
  for (size_t u = 0; u < units; ++u) {
    if (u + 1 < units) gather(u + 1);
    const bool differentiated = u > 0 || trains_input_;
    inputs[u] = x.detach().requires_grad_(differentiated);
    const bool keep_graph = u + 1 == units || (!options_.recompute && differentiated);
    at::AutoGradMode mode(keep_graph);
    auto y = forward_unit(u, inputs[u], batch);
    if (keep_graph) outputs[u] = y;
    x = y.detach();
    if (u + 1 < units) release(u);
  }
  const double loss = x.item<double>();
  at::Tensor gradient = at::ones_like(x);
  x.reset();
  for (size_t u = units; u-- > 0;) {
    if (u > 0) gather(u - 1);
    gradient = backward_unit(u, std::move(inputs[u]), std::move(outputs[u]), gradient, batch);
    release(u);
    if (last) reduce_after(u);
  }
  return loss;
}

// Returns the gradient of the unit's input. `out`: the unit's graph, or undefined when it is to be computed again.
at::Tensor Engine::backward_unit(size_t unit, at::Tensor in, at::Tensor out, const at::Tensor& gradient,
                                 const ops::Batch& batch) {
  if (!in.requires_grad()) return {};
  at::AutoGradMode mode(true);
  if (!out.defined()) out = forward_unit(unit, in, batch);
  torch::autograd::backward({out}, {gradient});
  return in.grad();
}

void Engine::reduce_after(size_t unit) {
  for (GroupState* state : whole_after_[unit]) {
    state->group->finish_update();
    policy_->reduce(*state);
  }
}

void Engine::allocate_optimizer() {
  if (options_.optimizer.kind != OptimizerOptions::Kind::adamw) return;
  for (auto& state : states_) {
    if (!state->group->trainable() || state->exp_avg.defined()) continue;
    state->exp_avg = at::zeros_like(state->master);
    state->exp_avg_sq = at::zeros_like(state->master);
  }
}

UpdateResult Engine::finish_update(double learning_rate) {
  policy_->wait_reduced();
  double squares = 0;
  for (auto& state : states_) {
    if (state->group->trainable()) squares += ops::kernels::sum_of_squares(policy_->owned_gradient(*state));
  }
  const double norm = std::sqrt(policy_->global_sum(squares));
  // The norm is one number, equal on all ranks: they agree on skipping without another collective.
  if (!std::isfinite(norm)) return {norm, true};
  step(learning_rate, norm);
  return {norm, false};
}

void Engine::step(double learning_rate, double grad_norm) {
  allocate_optimizer();
  ++updates_done_;
  double clip = 1.0;
  if (options_.max_grad_norm > 0) clip = std::min(1.0, options_.max_grad_norm / (grad_norm + 1e-6));
  for (auto& state : states_) {
    if (!state->group->trainable()) continue;
    optimizer_step(*state, policy_->owned_gradient(*state), options_.optimizer, learning_rate, clip, updates_done_);
    policy_->publish(*state);
  }
}

at::Tensor Engine::hidden_states(const ops::Batch& batch) {
  at::NoGradGuard no_grad;
  at::Tensor x = anchor_;
  gather(0);
  for (size_t u = 0; u + 1 < chain_.units.size(); ++u) {
    gather(u + 1);
    x = forward_unit(u, x, batch);
    release(u);
  }
  return x;
}

double Engine::evaluate(const ops::Batch* batch) {
  if (batch == nullptr || batch->num_labels() == 0) return 0;
  at::NoGradGuard no_grad;
  const size_t head = chain_.units.size() - 1;
  const double loss = forward_unit(head, hidden_states(*batch), *batch).item<double>();
  release(head);
  return loss;
}

std::vector<StateRange> Engine::owned_state() const {
  std::vector<StateRange> ranges;
  if (!policy_->writes()) return ranges;
  for (const auto& state : states_) {
    const at::Tensor& owned = state->master.defined() ? state->master : state->group->compute;
    for (const auto& param : state->group->params()) {
      StateRange range{state->group, &param, 0, param.numel, {}, {}, {}};
      const int64_t begin = param.offset - state->first_element;
      range.weight = owned.narrow(0, begin, param.numel);
      if (state->exp_avg.defined()) {
        range.exp_avg = state->exp_avg.narrow(0, begin, param.numel);
        range.exp_avg_sq = state->exp_avg_sq.narrow(0, begin, param.numel);
      }
      ranges.push_back(std::move(range));
    }
  }
  return ranges;
}

void Engine::load_optimizer(const ops::ParameterReader& exp_avg, const ops::ParameterReader& exp_avg_sq,
                            int64_t updates_done) {
  updates_done_ = updates_done;
  if (options_.optimizer.kind != OptimizerOptions::Kind::adamw || updates_done == 0) return;
  allocate_optimizer();
  auto fill = [&](const ops::ParameterReader& reader, at::Tensor& flat, const GroupState& state) {
    for (const auto& param : state.group->params()) {
      auto staged = at::empty({param.numel}, at::kFloat);
      reader(param, 0, staged);
      flat.narrow(0, param.offset - state.first_element, param.numel).copy_(staged);
    }
  };
  for (auto& state : states_) {
    if (!state->group->trainable()) continue;
    fill(exp_avg, state->exp_avg, *state);
    fill(exp_avg_sq, state->exp_avg_sq, *state);
  }
}

uint64_t Engine::weights_checksum() const {
  uint64_t sum = 0;
  for (const auto& state : states_) {
    if (!state->group->trainable()) continue;
    auto host = state->master.cpu();
    sum = hash64(host.const_data_ptr(), host.nbytes(), sum);
  }
  return sum;
}

}  // namespace aitraining::engine
