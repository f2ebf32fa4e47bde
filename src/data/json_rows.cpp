#include <algorithm>

#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"
#include "json_text.h"
#include "rows.h"

namespace aitraining::data {

namespace {

using nlohmann::ordered_json;

// Pages of the map that were read are given back in steps of this size, so that a large file is not held twice.
constexpr size_t kReleaseStep = size_t{16} << 20;

[[noreturn]] void refuse_json(const std::string& path, std::string_view text, int64_t first_line,
                              const JsonProblem& problem) {
  const auto before = text.substr(0, std::min(problem.offset, text.size()));
  const auto line = first_line + std::count(before.begin(), before.end(), '\n');
  const auto line_begin = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  throw UserError("{}:{}:{}: not valid JSON: {}", path, line, before.size() - line_begin + 1, problem.message);
}

std::string kind_of(const ordered_json& value) {
  if (value.is_object() && value.size() > 0) {
    std::vector<std::string> keys;
    for (const auto& [key, _] : value.items())
      if (keys.size() < 5) keys.push_back("`" + key + "`");
    return fmt::format("an object with the key{} {}", keys.size() > 1 ? "s" : "", join(keys, ", "));
  }
  return std::string(value.is_array() ? "an array" : value.is_object() ? "an object" : value.type_name());
}

}  // namespace

std::vector<Row> read_json_lines(const MappedFile& bytes, std::string_view text) {
  std::vector<Row> rows;
  const std::string path = bytes.path().string();
  const auto skipped = bytes.bytes().size() - text.size();
  size_t released = 0;
  int64_t line = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const auto content = text.substr(begin, end - begin);
    begin = end + 1;
    ++line;
    if (trim(content).empty()) continue;
    auto parsed = parse_json(content, 1);
    if (parsed.problem) refuse_json(path, content, line, *parsed.problem);
    if (!parsed.value.is_object())
      throw UserError("{}:{}: expected one JSON object {{\"column\": value, ...}} per line, found {}", path, line,
                      kind_of(parsed.value));
    rows.push_back({line, std::move(parsed.value)});
    if (begin - released >= kReleaseStep && begin <= text.size()) {
      bytes.release(skipped + released, begin - released);
      released = begin;
    }
  }
  return rows;
}

std::vector<Row> read_json_array(const MappedFile& bytes, std::string_view text) {
  const std::string path = bytes.path().string();
  auto parsed = parse_json(text, 2);
  if (parsed.problem) refuse_json(path, text, 1, *parsed.problem);
  if (!parsed.value.is_array())
    throw UserError(
        "{}: expected a JSON array of objects [{{\"column\": value, ...}}, ...], found {}. Write the rows as such an "
        "array, or one object per line in a .jsonl file",
        path, kind_of(parsed.value));
  std::vector<Row> rows;
  rows.reserve(parsed.value.size());
  for (auto& value : parsed.value) {
    const auto number = static_cast<int64_t>(rows.size()) + 1;
    if (!value.is_object())
      throw UserError("{}, row {}: expected an array of objects, found {} in it", path, number, kind_of(value));
    rows.push_back({number, std::move(value)});
  }
  return rows;
}

}  // namespace aitraining::data
