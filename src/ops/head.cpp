#include "aitraining/ops/head.h"

#include <algorithm>

#include "aitraining/ops/kernels.h"
#include "node.h"

namespace aitraining::ops {
namespace {

// Elements of one chunk of logits: large enough for an efficient matrix product, small beside the weights.
constexpr int64_t kChunkElements = int64_t{12} << 20;

struct HeadBackward : torch::autograd::Node {
  const Batch* batch = nullptr;
  at::Tensor drows;  // [N, hidden], gradient of the labelled rows
  int64_t tokens = 0;
  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override {
    at::NoGradGuard no_grad;
    auto dx = at::zeros({tokens, drows.size(1)}, drows.options());
    dx.index_copy_(0, batch->label_rows, drows);
    drows.reset();
    const double outer = grads[0].item<double>();
    return {outer == 1.0 ? dx : dx.mul_(outer)};
  }
  void release_variables() override { drows.reset(); }
};

struct Sweep {
  double loss = 0;
  at::Tensor dnormed;  // [N, hidden] in the type of x
};

// One pass over chunks of labelled rows: logits -> loss -> d logits (in place) -> d rows and d weight.
Sweep sweep(const at::Tensor& normed, const Head& head, const Batch& batch, bool gradient) {
  Sweep result;
  const auto weight = head.weight.value();
  const int64_t n = normed.size(0), vocab = weight.size(0);
  const int64_t most = std::max<int64_t>(1, kChunkElements / vocab);
  const int64_t chunks = (n + most - 1) / most, rows = (n + chunks - 1) / chunks;
  if (gradient) result.dnormed = at::empty_like(normed);
  const bool fp32 = normed.scalar_type() == at::kFloat;
  auto space = at::empty({rows, vocab}, normed.options());
  for (int64_t begin = 0; begin < n; begin += rows) {
    const int64_t count = std::min(rows, n - begin);
    auto part = normed.narrow(0, begin, count);
    auto scores = space.narrow(0, 0, count);
    at::mm_out(scores, part, weight.t());
    auto scores32 = fp32 ? scores : scores.to(at::kFloat);
    result.loss +=
        kernels::cross_entropy_(scores32, batch.labels.narrow(0, begin, count), batch.loss_scale, gradient);
    if (!gradient) continue;
    auto dscores = fp32 ? scores : scores32.to(normed.scalar_type());
    auto out = result.dnormed.narrow(0, begin, count);
    at::mm_out(out, dscores, weight);
    if (head.weight.trainable()) head.weight.add_product(dscores.t(), part);
  }
  return result;
}

}  // namespace

at::Tensor negative_log_likelihood(const at::Tensor& x, const Head& head, const Batch& batch) {
  const bool gradient = at::GradMode::is_enabled() && x.requires_grad();
  at::Tensor loss, drows;
  {
    at::NoGradGuard no_grad;
    auto rows = x.index_select(0, batch.label_rows);
    auto result = sweep(kernels::rms_norm(rows, head.norm.value(), head.norm_eps), head, batch, gradient);
    loss = at::full({}, result.loss, x.options().dtype(at::kDouble));
    if (gradient) {
      auto [dx, dw] = kernels::rms_norm_backward(result.dnormed, rows, head.norm.value(), head.norm_eps,
                                                 head.norm.trainable());
      if (dw.defined()) head.norm.add(dw);
      drows = dx;
    }
  }
  attach<HeadBackward>(loss, {x}, [&](HeadBackward& node) {
    node.batch = &batch;
    node.drows = drows;
    node.tokens = x.size(0);
  });
  return loss;
}

at::Tensor logits(const at::Tensor& x, const Head& head) {
  at::NoGradGuard no_grad;
  auto normed = kernels::rms_norm(x, head.norm.value(), head.norm_eps);
  return at::mm(normed, head.weight.value().t()).to(at::kFloat);
}

}  // namespace aitraining::ops
