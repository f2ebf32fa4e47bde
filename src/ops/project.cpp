#include "aitraining/ops/project.h"

#include "aitraining/core/error.h"
#include "aitraining/ops/kernels.h"
#include "node.h"

namespace aitraining::ops {
namespace {

using Prologue = Projection::Prologue;

at::Tensor apply_prologue(const at::Tensor& x, const Projection& spec) {
  switch (spec.prologue) {
    case Prologue::rms_norm: return kernels::rms_norm(x, spec.norm.value(), spec.norm_eps);
    case Prologue::swiglu: return kernels::swiglu(x);
    case Prologue::none: break;
  }
  return x;
}

at::Tensor prologue_backward(const at::Tensor& dinput, const at::Tensor& x, const Projection& spec) {
  switch (spec.prologue) {
    case Prologue::rms_norm: {
      auto [dx, dw] =
          kernels::rms_norm_backward(dinput, x, spec.norm.value(), spec.norm_eps, spec.norm.trainable());
      if (dw.defined()) spec.norm.add(dw);
      return dx;
    }
    case Prologue::swiglu: return kernels::swiglu_backward(dinput, x);
    case Prologue::none: break;
  }
  return dinput;
}

bool drops(const LoraPart& part, const Batch& batch) { return batch.training && part.dropout > 0; }

at::Tensor dropped(const at::Tensor& input, const LoraPart& part, const Batch& batch) {
  return drops(part, batch) ? kernels::dropout(input, batch.row_keys, part.site, part.dropout) : input;
}

struct ProjectBackward : torch::autograd::Node {
  const Projection* spec = nullptr;
  const Batch* batch = nullptr;
  at::Tensor x;
  std::vector<at::Tensor> low_rank;  // per LoRA part: dropout(f(x)) A^T, [T, r]
  bool want_x = false, has_residual = false;

  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override {
    at::NoGradGuard no_grad;
    auto dy = grads[0].contiguous();
    auto input = apply_prologue(x, *spec);
    if (spec->weight.trainable()) spec->weight.add_product(dy.t(), input);
    if (spec->bias.defined() && spec->bias.trainable()) spec->bias.add(dy.sum(0));
    at::Tensor dinput;
    if (want_x) dinput = at::mm(dy, spec->weight.value());
    for (size_t i = 0; i < spec->lora.size(); ++i) lora_backward(i, dy, input, dinput);
    input.reset();
    auto dx = want_x ? prologue_backward(dinput, x, *spec) : at::Tensor();
    release_variables();
    return {dx, has_residual ? dy : at::Tensor()};
  }

  void lora_backward(size_t index, const at::Tensor& dy, const at::Tensor& input, at::Tensor& dinput) {
    const LoraPart& part = spec->lora[index];
    auto dpart = dy.slice(1, part.begin, part.end);
    auto scaled = dpart * part.scale;
    part.b.add_product(scaled.t(), low_rank[index]);
    auto dlow = at::mm(scaled, part.b.value());
    part.a.add_product(dlow.t(), dropped(input, part, *batch));
    if (!want_x) return;
    if (drops(part, *batch)) {
      dinput.add_(dropped(at::mm(dlow, part.a.value()), part, *batch));
    } else {
      dinput.addmm_(dlow, part.a.value());
    }
  }

  void release_variables() override {
    x.reset();
    low_rank.clear();
  }
};

}  // namespace

at::Tensor project(const at::Tensor& x, const Projection& spec, const Batch& batch, const at::Tensor& residual) {
  std::vector<at::Tensor> low_rank;
  at::Tensor y;
  {
    at::NoGradGuard no_grad;
    auto input = apply_prologue(x, spec);
    const auto weight = spec.weight.value();
    if (residual.defined()) {
      y = at::addmm(residual, input, weight.t());
      if (spec.bias.defined()) y.add_(spec.bias.value());
    } else {
      y = spec.bias.defined() ? at::addmm(spec.bias.value(), input, weight.t()) : at::mm(input, weight.t());
    }
    for (const LoraPart& part : spec.lora) {
      low_rank.push_back(at::mm(dropped(input, part, batch), part.a.value().t()));
      y.slice(1, part.begin, part.end).addmm_(low_rank.back(), part.b.value().t(), 1, part.scale);
    }
  }
  attach<ProjectBackward>(y, {x, residual}, [&](ProjectBackward& node) {
    node.spec = &spec;
    node.batch = &batch;
    node.x = x.detach();
    node.low_rank = std::move(low_rank);
    node.want_x = x.requires_grad();
    node.has_residual = residual.defined() && residual.requires_grad();
  });
  return y;
}

}  // namespace aitraining::ops
