#pragma once
#include "aitraining/ops/batch.h"

namespace aitraining::ops {

struct AttentionShape {
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  double scale = 0;  // 0: 1 / sqrt(head_dim)
};

// Causal attention with rotary positions, inside each segment of the batch alone. qkv: [T, (heads + 2 kv_heads) *
// head_dim], queries first, then keys, then values; result [T, heads * head_dim]. Grouped queries share kv heads in
// order. Differentiable in qkv; `batch` outlives the backward pass.
at::Tensor attention(const at::Tensor& qkv, const AttentionShape& shape, const Batch& batch);

}  // namespace aitraining::ops
