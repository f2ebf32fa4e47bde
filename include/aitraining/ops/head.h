#pragma once
#include "aitraining/ops/batch.h"
#include "aitraining/ops/param_group.h"

namespace aitraining::ops {

struct Head {
  Weight norm;      // final norm, [hidden]
  double norm_eps = 1e-6;
  Weight weight;    // [vocab, hidden]: the output matrix, or the embedding when tied
};

// Sum over the batch's labels of -log p(label), as a scalar fp64 tensor; only labelled rows are computed, in chunks, so
// that full logits never exist. The loss is linear in the log-probabilities with the factor batch.loss_scale, known
// before the pass: the gradients of head and rows are therefore made in the same sweep as the loss. Differentiable in
// x: backward() of the result with gradient g passes g * loss_scale * d(sum) / dx on.
at::Tensor negative_log_likelihood(const at::Tensor& x, const Head& head, const Batch& batch);

// fp32 logits [T, vocab] of every row, no gradient: for tests and tools.
at::Tensor logits(const at::Tensor& x, const Head& head);

}  // namespace aitraining::ops
