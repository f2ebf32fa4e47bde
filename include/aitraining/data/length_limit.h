#pragma once
// How many tokens of a row are used.
#include <cstdint>
#include <optional>
#include <string>

namespace aitraining::data {

struct LengthSettings {
  int64_t block_size = 0;               // as given; 0 or less: unset, which means 1024
  int64_t model_max_length = 0;         // 2048: as the model's own limit says
  int64_t max_position_embeddings = 0;  // of the model
  std::optional<int64_t> tokenizer_limit{};
};

// block_size, never more than the other three; `reason` tells which of them decided.
struct LengthLimit {
  int64_t tokens = 0;
  std::string reason;
};
LengthLimit length_limit(const LengthSettings& settings);

}  // namespace aitraining::data
