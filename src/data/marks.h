#pragma once
// Private-use characters put round the contents of messages, so that the rendered text shows where they went.
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace aitraining::data {

struct Placement {
  bool all_messages = true;  // false: the assistant's only
  bool inside = false;       // within leading and trailing white space, and none in contents that are empty
};

struct MarkedMessages {
  nlohmann::ordered_json messages;
  std::vector<bool> marked;  // whether message i's content got its two marks
};

struct MarkPositions {
  std::optional<size_t> open, close;  // of the content
  std::optional<size_t> tail;         // after the last argument of the last tool call, or its name if it has none
};

struct MarkedText {
  std::string text;  // without the marks
  std::vector<MarkPositions> positions;
};

MarkedMessages mark_messages(const nlohmann::ordered_json& messages, const Placement& placement);
// None when a mark stands there twice.
std::optional<MarkedText> read_marks(const std::string& marked, size_t num_messages);
// Whether a text has characters of the range the marks are taken from.
bool has_mark_characters(std::string_view text);

}  // namespace aitraining::data
