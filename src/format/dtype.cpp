#include "dtype.h"

#include <array>

#include <fmt/ranges.h>

#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"

namespace aitraining::format {
namespace {

struct Row {
  DType dtype;
  const char* name;
  BlockLayout layout;
  int ggml;  // -1: not a GGUF type
};
// Block sizes as ggml defines them (ggml-common.h).
constexpr std::array<Row, 20> kTypes{{
    {DType::f64, "F64", {1, 8}, 28},      {DType::f32, "F32", {1, 4}, 0},       {DType::f16, "F16", {1, 2}, 1},
    {DType::bf16, "BF16", {1, 2}, 30},    {DType::i64, "I64", {1, 8}, 27},      {DType::i32, "I32", {1, 4}, 26},
    {DType::i16, "I16", {1, 2}, 25},      {DType::i8, "I8", {1, 1}, 24},        {DType::u8, "U8", {1, 1}, -1},
    {DType::boolean, "BOOL", {1, 1}, -1}, {DType::q4_0, "Q4_0", {32, 18}, 2},   {DType::q4_1, "Q4_1", {32, 20}, 3},
    {DType::q5_0, "Q5_0", {32, 22}, 6},   {DType::q5_1, "Q5_1", {32, 24}, 7},   {DType::q8_0, "Q8_0", {32, 34}, 8},
    {DType::q2_k, "Q2_K", {256, 84}, 10}, {DType::q3_k, "Q3_K", {256, 110}, 11}, {DType::q4_k, "Q4_K", {256, 144}, 12},
    {DType::q5_k, "Q5_K", {256, 176}, 13}, {DType::q6_k, "Q6_K", {256, 210}, 14},
}};

struct Unreadable {
  uint32_t type;
  const char* name;
};
constexpr std::array<Unreadable, 14> kUnreadable{{
    {9, "Q8_1"}, {15, "Q8_K"}, {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"},
    {21, "IQ3_S"}, {22, "IQ2_S"}, {23, "IQ4_XS"}, {29, "IQ1_M"}, {34, "TQ1_0"}, {35, "TQ2_0"}, {39, "MXFP4"},
}};

const Row& row_of(DType dtype) {
  for (const Row& row : kTypes)
    if (row.dtype == dtype) return row;
  throw BugError("[format] unknown dtype {}", static_cast<int>(dtype));
}

}  // namespace

const char* dtype_name(DType dtype) { return row_of(dtype).name; }
BlockLayout block_layout(DType dtype) { return row_of(dtype).layout; }
bool is_quantized(DType dtype) { return row_of(dtype).layout.elements > 1; }

std::optional<DType> safetensors_dtype(std::string_view name) {
  for (const Row& row : kTypes)
    if (row.layout.elements == 1 && name == row.name) return row.dtype;
  return std::nullopt;
}

std::optional<DType> ggml_dtype(uint32_t type) {
  for (const Row& row : kTypes)
    if (row.ggml >= 0 && static_cast<uint32_t>(row.ggml) == type) return row.dtype;
  return std::nullopt;
}

std::string ggml_type_name(uint32_t type) {
  if (const auto dtype = ggml_dtype(type)) return dtype_name(*dtype);
  for (const Unreadable& row : kUnreadable)
    if (row.type == type) return row.name;
  return fmt::format("type {}", type);
}

std::string readable_ggml_types() {
  std::vector<std::string> names;
  for (const Row& row : kTypes)
    if (row.ggml >= 0) names.emplace_back(row.name);
  return join(names, ", ");
}

std::optional<int64_t> checked_elements(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  for (const int64_t dim : shape)
    if (dim < 0 || __builtin_mul_overflow(product, dim, &product)) return std::nullopt;
  return product;
}

std::string shape_text(const std::vector<int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

int64_t TensorInfo::elements() const {
  const auto count = checked_elements(shape);
  AIT_CHECK(count.has_value(), "shape {} of {}", shape_text(shape), name);
  return *count;
}

}  // namespace aitraining::format
