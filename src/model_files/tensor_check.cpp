#include "tensor_check.h"

#include <fmt/ranges.h>

#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"
#include "aitraining/format/strict_json.h"

namespace aitraining::model {
namespace {

using format::DType;

std::string shape_text(const std::vector<int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

bool is_integer(DType dtype) {
  return dtype == DType::i64 || dtype == DType::i32 || dtype == DType::i16 || dtype == DType::i8 || dtype == DType::u8 ||
         dtype == DType::boolean;
}

}  // namespace

std::vector<std::string> missing_tensors(const ModelConfig& config, const format::TensorStore& store,
                                         const Rename& rename) {
  std::vector<std::string> missing;
  for (const auto& [name, shape] : expected_tensors(config))
    if (!store.tensors().contains(rename(name))) missing.push_back(rename(name));
  return missing;
}

void check_shapes(const ModelConfig& config, const format::TensorStore& store, const Rename& rename) {
  std::vector<std::string> wrong;
  for (const auto& [name, shape] : expected_tensors(config)) {
    const format::TensorInfo& info = store.tensors().at(rename(name));
    if (info.shape == shape && !is_integer(info.dtype)) continue;
    if (info.shape == shape)
      wrong.push_back(fmt::format("{} is stored as {}, which are no weights", info.name, dtype_name(info.dtype)));
    else if (name == "model.embed_tokens.weight" && info.shape.size() == 2 && info.shape[1] == shape[1])
      wrong.push_back(fmt::format("vocab_size is {}, {} has {} rows", shape[0], info.name, info.shape[0]));
    else
      wrong.push_back(fmt::format("{} is {}, the config asks for {}", info.name, shape_text(info.shape), shape_text(shape)));
  }
  if (!wrong.empty())
    throw UserError("{}: the weights do not fit the config: {}", store.describe(), name_list(wrong));
}

std::vector<std::string> unused_tensors(const format::TensorStore& store, const std::set<std::string>& used) {
  std::vector<std::string> unused;
  for (const auto& [name, info] : store.tensors())
    if (!used.contains(name)) unused.push_back(name);
  return unused;
}

std::string name_list(const std::vector<std::string>& names) {
  constexpr size_t kShown = 8;
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(kShown, names.size()); ++i) shown.push_back(format::printable(names[i]));
  std::string text = join(shown, ", ");
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

}  // namespace aitraining::model
