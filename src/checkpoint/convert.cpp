#include "convert.h"

#include "aitraining/core/error.h"

namespace aitraining::checkpoint {

at::ScalarType scalar_type(format::DType dtype) {
  switch (dtype) {
    case format::DType::f32: return at::kFloat;
    case format::DType::bf16: return at::kBFloat16;
    case format::DType::f16: return at::kHalf;
    default: throw BugError("[checkpoint] models are not saved as {}", format::dtype_name(dtype));
  }
}

const char* torch_dtype_name(format::DType dtype) {
  switch (scalar_type(dtype)) {
    case at::kBFloat16: return "bfloat16";
    case at::kHalf: return "float16";
    default: return "float32";
  }
}

at::Tensor to_saved(const at::Tensor& value, format::DType dtype) {
  return value.to(at::kCPU).to(scalar_type(dtype)).contiguous();
}

}  // namespace aitraining::checkpoint
