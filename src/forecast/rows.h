#pragma once
// How many rows a split has and how long they can be, without a tokenizer.
#include <cstdint>
#include <optional>
#include <string>

#include "aitraining/config/training_params.h"

namespace aitraining::forecast {

struct Rows {
  std::string file;
  std::optional<int64_t> count;    // unknown for a large file whose rows are not lines
  std::optional<int64_t> longest;  // bytes of the longest row as it stands in the file
};
// UserError when there is no such split, or a small file cannot be read.
Rows count_rows(const config::TrainingParams& params, const std::string& split);

// Tokens that no row exceeds: a token stands for at least one byte, and templates add some.
int64_t token_bound(const Rows& rows, int64_t limit);

}  // namespace aitraining::forecast
