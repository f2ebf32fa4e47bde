#pragma once
#include <cstdint>
#include <optional>

#include <nlohmann/json.hpp>

namespace aitraining::text {

// model_max_length of a tokenizer_config.json; none where it means "no limit".
std::optional<int64_t> length_limit(const nlohmann::json& tokenizer_config);

}  // namespace aitraining::text
