#pragma once
#include <cstdint>
#include <vector>

#include <ATen/ATen.h>

namespace aitraining::ops {

// A micro-batch on the device: rows laid end to end, T tokens, without padding.
struct Batch {
  at::Tensor tokens;                    // [T] int64
  at::Tensor positions;                 // [T] int64, from 0 in each segment
  std::vector<int64_t> segment_begin;   // S + 1 host values: segment s is tokens [begin[s], begin[s+1])
  at::Tensor label_rows, labels;        // [N] int64: token at label_rows[i] predicts labels[i]
  at::Tensor row_keys;                  // [T] int64: key of counter-based masks, of (seed, pass, sample, position)
  at::Tensor rope_cos, rope_sin;        // [T, head_dim / 2] fp32
  double loss_scale = 1.0;              // d(loss) / d(negative log-likelihood of one label)
  bool training = true;                 // false: no dropout
  int64_t num_tokens() const { return tokens.size(0); }
  int64_t num_labels() const { return labels.size(0); }
};

}  // namespace aitraining::ops
