#pragma once
// Blocks of ggml's quantised types to fp32, bit for bit as the reference implementations compute them.
#include <cstddef>

#include "aitraining/format/tensor_store.h"

namespace aitraining::format {

// `blocks` whole blocks of `dtype` (a quantised type) from `in` to block_layout(dtype).elements * blocks floats.
void dequantize_blocks(DType dtype, const std::byte* in, int64_t blocks, float* out);

}  // namespace aitraining::format
