// Apart from the tokenizer itself: who asks for the limit alone links nothing of the bridge.
#include "length_limit.h"

#include <filesystem>

#include "aitraining/core/error.h"
#include "aitraining/core/files.h"
#include "aitraining/format/strict_json.h"
#include "aitraining/text/assets.h"

namespace aitraining::text {
namespace {

constexpr double kNoLimit = 1e9;

}  // namespace

// A number as Hugging Face writes "no limit" (about 1e30) does not fit an integer.
std::optional<int64_t> length_limit(const nlohmann::json& tokenizer_config) {
  const auto found = tokenizer_config.find("model_max_length");
  if (found == tokenizer_config.end() || !found->is_number()) return std::nullopt;
  const double limit = found->get<double>();
  if (!(limit >= 1 && limit < kNoLimit)) return std::nullopt;
  return static_cast<int64_t>(limit);
}

std::optional<int64_t> tokenizer_length_limit(const std::filesystem::path& model_path) {
  const std::filesystem::path file = model_path / "tokenizer_config.json";
  if (!std::filesystem::is_regular_file(file)) return std::nullopt;
  const auto config = format::parse_strict_json_sorted(read_file(file), file.string());
  return config.is_object() ? length_limit(config) : std::nullopt;
}

}  // namespace aitraining::text
