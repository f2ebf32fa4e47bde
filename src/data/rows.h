#pragma once
// The readers behind read_rows(), one per format, and how a row is named in messages.
#include <string>
#include <string_view>
#include <vector>

#include "aitraining/core/files.h"
#include "aitraining/data/sft.h"

namespace aitraining::data {

// "/data/train.jsonl:7" (a line) or "/data/train.csv, row 7".
std::string where(const SplitFile& file, int64_t row);

// All take the file's bytes without a byte order mark. UserError naming path and line.
std::vector<Row> read_separated(const MappedFile& bytes, std::string_view text, char separator);
std::vector<Row> read_json_lines(const MappedFile& bytes, std::string_view text);
std::vector<Row> read_json_array(const MappedFile& bytes, std::string_view text);

}  // namespace aitraining::data
