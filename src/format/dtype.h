#pragma once
// What a storage type occupies in a file.
#include <optional>
#include <string>
#include <string_view>

#include "aitraining/format/tensor_store.h"

namespace aitraining::format {

struct BlockLayout {
  int64_t elements;  // per block; 1 for plain types
  int64_t bytes;     // per block
};
BlockLayout block_layout(DType dtype);
bool is_quantized(DType dtype);

std::optional<DType> safetensors_dtype(std::string_view name);
std::optional<DType> ggml_dtype(uint32_t type);
std::string ggml_type_name(uint32_t type);  // also of types that cannot be read, for messages
std::string readable_ggml_types();

// Product of the dimensions, or nothing when one is negative or the product does not fit 63 bits.
std::optional<int64_t> checked_elements(const std::vector<int64_t>& shape);
// "[2, 3]"
std::string shape_text(const std::vector<int64_t>& shape);

}  // namespace aitraining::format
