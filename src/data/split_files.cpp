#include <algorithm>
#include <set>

#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"
#include "rows.h"

namespace aitraining::data {

namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kFormats = {"csv", "jsonl", "json", "tsv"};  // in order of preference

std::string format_of(const fs::path& path) {
  const std::string extension = to_lower(path.extension().string());
  for (const auto& format : kFormats)
    if (extension == "." + format) return format;
  return {};
}

std::vector<std::string> splits_in(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.is_regular_file(ignored) && !format_of(entry.path()).empty()) names.insert(entry.path().stem().string());
  return {names.begin(), names.end()};
}

std::string looked_for(const fs::path& folder, const std::string& split) {
  std::vector<std::string> paths;
  for (const auto& format : kFormats) paths.push_back((folder / (split + "." + format)).string());
  const std::string last = std::move(paths.back());
  paths.pop_back();
  return join(paths, ", ") + " and " + last;
}

std::string what_is_there(const fs::path& folder, const std::string& split) {
  if (!fs::exists(folder))
    return fmt::format("{} does not exist; --data-path names a local folder or file (data sets of the Hub are not "
                       "downloaded)", folder.string());
  std::string other;
  for (const char* extension : {".parquet", ".arrow", ".txt"})
    if (fs::exists(folder / (split + extension)))
      other += fmt::format(" {}{} is there, but that format is not read: convert it to .jsonl.", split, extension);
  const auto splits = splits_in(folder);
  if (splits.empty()) return fmt::format("there is no split in {}.{}", folder.string(), other);
  std::string near;
  if (const auto name = nearest(split, splits)) near = fmt::format(" (did you mean `{}`?)", *name);
  return fmt::format("splits that are there: {}{}.{}", join(splits, ", "), near, other);
}

}  // namespace

std::string where(const SplitFile& file, int64_t row) {
  return file.format == "jsonl" ? fmt::format("{}:{}", file.path.string(), row)
                                : fmt::format("{}, row {}", file.path.string(), row);
}

SplitFile find_split(const fs::path& data_path, const std::string& split) {
  const fs::path path = fs::absolute(data_path).lexically_normal();
  fs::path folder = path;
  if (fs::is_regular_file(path)) {
    const std::string format = format_of(path);
    if (format.empty())
      throw UserError("{}: data files are read as .csv, .tsv, .jsonl or .json; this one ends in `{}`", path.string(),
                      path.extension().string());
    // A file stands for its own split and for `train`; another split must be another file, never the same rows again.
    if (split == "train" || path.stem() == split) return {path, format};
    folder = path.parent_path();
  }
  for (const auto& format : kFormats)
    if (const fs::path candidate = folder / (split + "." + format); fs::is_regular_file(candidate))
      return {candidate, format};
  throw UserError("No {} data: looked for {}; {}", split == "train" ? "training" : "`" + split + "`",
                  looked_for(folder, split), what_is_there(folder, split));
}

std::vector<Row> read_rows(const SplitFile& file) {
  std::vector<Row> rows;
  std::error_code error;
  if (const auto size = fs::file_size(file.path, error); error || size > 0) {
    const MappedFile bytes(file.path);
    std::string_view text(reinterpret_cast<const char*>(bytes.bytes().data()), bytes.bytes().size());
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    if (file.format == "csv" || file.format == "tsv")
      rows = read_separated(bytes, text, file.format == "csv" ? ',' : '\t');
    else if (file.format == "jsonl")
      rows = read_json_lines(bytes, text);
    else
      rows = read_json_array(bytes, text);
  }
  if (rows.empty()) throw UserError("{}: the split is empty: it holds no rows", file.path.string());
  return rows;
}

}  // namespace aitraining::data
