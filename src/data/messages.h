#pragma once
// What a cell of the text column holds, and conversations in the one form that templates get.
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace aitraining::data {

enum class CellKind { missing, text, messages, unusable };

struct Cell {
  CellKind kind = CellKind::missing;
  std::string problem;  // unusable: what it holds instead
};

// `value` may be null (absent). JSON text of a message list counts as a message list.
Cell classify_cell(const nlohmann::ordered_json* value);
std::string cell_text(const nlohmann::ordered_json& value);

struct Conversation {
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  nlohmann::ordered_json tools;  // array or null
  bool renamed_keys = false;     // the row had from/value instead of role/content
};

// Reads the message list of `column` and the row's `tools`. Keys that are null are left out, so that a template sees
// an absent key the same way whichever spelling the file uses; content is text, null or absent; lists of text parts
// are joined; arguments and tools given as JSON text are parsed. UserError starting with `where`.
Conversation read_conversation(const nlohmann::ordered_json& row, const std::string& column, const std::string& where);

// Moves the system messages at the front before the first user text. False when there is none or no user message.
bool merge_system_into_user(nlohmann::ordered_json& messages);

// Copies for templates that do not take the form above: null contents as "", arguments of tool calls as JSON text.
nlohmann::ordered_json with_blank_contents(nlohmann::ordered_json messages);
nlohmann::ordered_json with_text_arguments(nlohmann::ordered_json messages);
std::vector<std::string> tool_call_names(const nlohmann::ordered_json& messages);

// The object of a tool call that has name and arguments: its "function", or the call itself.
nlohmann::ordered_json& called_function(nlohmann::ordered_json& call);

bool is_assistant(const nlohmann::ordered_json& message);
// The message's content, "" when absent or null.
std::string_view content_of(const nlohmann::ordered_json& message);

}  // namespace aitraining::data
