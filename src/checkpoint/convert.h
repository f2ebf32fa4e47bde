#pragma once
#include <ATen/ATen.h>

#include "aitraining/format/tensor_store.h"

namespace aitraining::checkpoint {

at::ScalarType scalar_type(format::DType dtype);        // f32, bf16, f16
const char* torch_dtype_name(format::DType dtype);      // "float32", "bfloat16", "float16"
// Contiguous on the CPU in `dtype`, rounded to nearest even at most once.
at::Tensor to_saved(const at::Tensor& value, format::DType dtype);

}  // namespace aitraining::checkpoint
