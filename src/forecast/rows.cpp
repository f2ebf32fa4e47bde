#include "rows.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "aitraining/core/files.h"
#include "aitraining/data/sft.h"

namespace aitraining::forecast {
namespace {

namespace fs = std::filesystem;
constexpr uintmax_t kParsed = uintmax_t{16} << 20;  // bytes: a file of this size is read in no time
constexpr uintmax_t kScanned = uintmax_t{512}
                               << 20;    // bytes: lines of this many are counted in 0.1 s
constexpr int64_t kTemplateTokens = 64;  // what a chat template writes around the messages

void scan_lines(const fs::path& file, Rows& rows) {
  const MappedFile map(file);
  const auto bytes = map.bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string_view scanned = text.substr(0, kScanned);
  int64_t count = 0, longest = 0;
  for (size_t begin = 0; begin < scanned.size();) {
    const void* found = std::memchr(scanned.data() + begin, '\n', scanned.size() - begin);
    const size_t end = found ? static_cast<size_t>(static_cast<const char*>(found) - scanned.data())
                             : scanned.size();
    const auto length = static_cast<int64_t>(end - begin);
    if (length > 1) ++count;  // neither empty nor a lone carriage return
    longest = std::max(longest, length);
    begin = end + 1;
  }
  if (scanned.size() == text.size()) {
    rows.count = count;
    rows.longest = longest;
  }
}

void parse_rows(const data::SplitFile& file, Rows& rows) {
  const auto parsed = data::read_rows(file);
  rows.count = static_cast<int64_t>(parsed.size());
  int64_t longest = 0;
  for (const data::Row& row : parsed)
    longest = std::max(
        longest,
        static_cast<int64_t>(
            row.values.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
                .size()));
  rows.longest = longest;
}

}  // namespace

Rows count_rows(const config::TrainingParams& params, const std::string& split) {
  const data::SplitFile file = data::find_split(params.data_path, split);
  Rows rows;
  rows.file = file.path.string();
  if (file.format == "jsonl") {
    scan_lines(file.path, rows);
  } else if (fs::file_size(file.path) <= kParsed) {
    parse_rows(file, rows);
  }
  if (rows.count && params.max_samples && *params.max_samples > 0 && split == params.train_split)
    rows.count = std::min(*rows.count, *params.max_samples);
  return rows;
}

int64_t token_bound(const Rows& rows, int64_t limit) {
  return rows.longest ? std::min(limit, *rows.longest + kTemplateTokens) : limit;
}

}  // namespace aitraining::forecast
