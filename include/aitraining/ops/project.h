#pragma once
// The matrix product of a transformer: y = residual + f(x) W^T + bias + LoRA, where f is a cheap function of x (nothing,
// a norm, a gated activation). f(x) is computed again in backward instead of being saved, so that what stays between
// forward and backward is x alone.
#include <optional>
#include <vector>

#include "aitraining/ops/batch.h"
#include "aitraining/ops/param_group.h"

namespace aitraining::ops {

// y[:, begin:end] += scale * B A dropout(f(x)): a low-rank update (Hu et al., 2021, arXiv 2106.09685) of the rows
// [begin, end) of the stacked weight.
struct LoraPart {
  int64_t begin = 0, end = 0;
  Weight a, b;          // [r, in], [end - begin, r]
  double scale = 1.0;   // alpha / r
  double dropout = 0.0;
  int64_t site = 0;     // number of this module in the model: separates its masks from others'
};

struct Projection {
  enum class Prologue { none, rms_norm, swiglu };
  Prologue prologue = Prologue::none;
  Weight norm;          // rms_norm: [in]
  double norm_eps = 1e-6;
  Weight weight;        // [out, in]
  Weight bias;          // [out], may be undefined
  std::vector<LoraPart> lora;
};

// x: [T, in] ([T, 2 in] before swiglu), residual: [T, out] or undefined. `spec` and `batch` outlive the backward pass.
// Differentiable in x and residual; gradients of weights go into their groups.
at::Tensor project(const at::Tensor& x, const Projection& spec, const Batch& batch, const at::Tensor& residual = {});

}  // namespace aitraining::ops
