#pragma once
#include "aitraining/ops/batch.h"
#include "aitraining/ops/param_group.h"

namespace aitraining::ops {

// Rows of the table: [T, hidden]. `anchor` is any tensor that requires a gradient when the table is trained: the first
// operation of a chain has no differentiable input of its own.
at::Tensor embed(const at::Tensor& anchor, const Weight& table, const Batch& batch);

}  // namespace aitraining::ops
