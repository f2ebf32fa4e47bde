#include "messages.h"

#include <algorithm>
#include <array>
#include <utility>

#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"
#include "json_text.h"

namespace aitraining::data {

namespace {

using nlohmann::ordered_json;

constexpr const char* kExpected = "expected a list of messages [{\"role\": \"user\", \"content\": \"...\"}, ...]";

bool is_message(const ordered_json& value) {
  return value.is_object() && (value.contains("role") || value.contains("from"));
}

bool all_messages(const ordered_json& list) { return std::all_of(list.begin(), list.end(), is_message); }

bool looks_like_object_list(std::string_view text) {
  text = trim(text);
  return text.starts_with('[') && trim(text.substr(1)).starts_with('{');
}

bool names_roles(std::string_view text) {
  const std::array<std::string_view, 4> words = {"\"role\"", "'role'", "\"from\"", "'from'"};
  return std::any_of(words.begin(), words.end(), [&](auto word) { return text.find(word) != text.npos; });
}

Cell classify_text(const std::string& text) {
  if (!looks_like_object_list(text)) return {CellKind::text, {}};
  const auto parsed = parse_json(text);
  if (!parsed.problem)
    return {all_messages(parsed.value) ? CellKind::messages : CellKind::text, {}};
  if (!names_roles(text)) return {CellKind::text, {}};
  return {CellKind::unusable, fmt::format("text that looks like a message list but is not JSON (character {}: {}; "
                                          "strings take double quotes)",
                                          parsed.problem->offset + 1, parsed.problem->message)};
}

// Tables fill absent keys with null, and a template would print it; in a list null is a value of its own.
void drop_nulls(ordered_json& value) {
  if (value.is_object()) {
    for (auto it = value.begin(); it != value.end();) {
      if (it->is_null()) it = value.erase(it);
      else ++it;
    }
  }
  if (value.is_structured())
    for (auto& child : value) drop_nulls(child);
}

std::string parts_text(const ordered_json& parts, const std::string& where) {
  std::string text;
  for (const auto& part : parts) {
    if (part.is_string()) {
      text += part.get_ref<const std::string&>();
    } else if (part.is_object() && part.contains("text") && part["text"].is_string()) {
      text += part["text"].get_ref<const std::string&>();
    } else {
      const bool typed = part.is_object() && part.contains("type") && part["type"].is_string();
      throw UserError("{}: a content part is {}; only text parts {{\"type\": \"text\", \"text\": \"...\"}} can be "
                      "trained", where, typed ? "of type `" + part["type"].get<std::string>() + "`" : part.dump());
    }
  }
  return text;
}

ordered_json plain_content(const ordered_json& content, const std::string& where) {
  if (content.is_null()) return nullptr;
  if (content.is_array()) return parts_text(content, where);
  if (content.is_object()) throw UserError("{}: content is an object; expected text or a list of text parts", where);
  return cell_text(content);
}

// As Python's json.dumps(value, ensure_ascii=False) writes it.
std::string python_json(const ordered_json& value) {
  if (!value.is_structured()) return value.dump();
  std::vector<std::string> parts;
  for (const auto& [key, item] : value.items())
    parts.push_back(value.is_object() ? ordered_json(key).dump() + ": " + python_json(item) : python_json(item));
  const std::string body = join(parts, ", ");
  return value.is_object() ? "{" + body + "}" : "[" + body + "]";
}

ordered_json parsed_arguments(const ordered_json& arguments, const std::string& where) {
  if (!arguments.is_string()) return arguments;
  const auto& text = arguments.get_ref<const std::string&>();
  if (trim(text).empty()) return ordered_json::object();
  auto parsed = parse_json(text);
  if (parsed.problem)
    throw UserError("{}: the arguments of a tool call are not valid JSON (character {}: {}): {}", where,
                    parsed.problem->offset + 1, parsed.problem->message, text);
  if (!parsed.value.is_object())
    throw UserError("{}: the arguments of a tool call must be a JSON object, found: {}", where, text);
  return std::move(parsed.value);
}

ordered_json object_list(const ordered_json& value, const char* what, const std::string& where) {
  ordered_json list = value;
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (trim(text).empty()) return nullptr;
    auto parsed = parse_json(text);
    if (parsed.problem)
      throw UserError("{}: `{}` is not valid JSON (character {}: {})", where, what, parsed.problem->offset + 1,
                      parsed.problem->message);
    list = std::move(parsed.value);
  }
  const bool fits = list.is_array() && std::all_of(list.begin(), list.end(), [](auto& v) { return v.is_object(); });
  if (!fits && !list.is_null()) throw UserError("{}: `{}` must be a list of objects", where, what);
  return list.empty() ? nullptr : list;
}

ordered_json plain_tool_calls(const ordered_json& calls, const std::string& where) {
  ordered_json list = object_list(calls, "tool_calls", where);
  for (auto& call : list) {
    ordered_json& target = called_function(call);
    if (target.contains("arguments")) target["arguments"] = parsed_arguments(target["arguments"], where);
  }
  drop_nulls(list);
  return list;
}

std::string share_gpt_role(const std::string& from, const std::string& where) {
  static const std::array<std::pair<const char*, const char*>, 11> kRoles = {{
      {"human", "user"}, {"user", "user"}, {"usr", "user"},
      {"gpt", "assistant"}, {"assistant", "assistant"}, {"ai", "assistant"}, {"model", "assistant"},
      {"bot", "assistant"}, {"chatbot", "assistant"}, {"system", "system"}, {"sys", "system"}}};
  const std::string word = to_lower(from);
  for (const auto& [name, role] : kRoles)
    if (word == name) return role;
  throw UserError("{}: unknown speaker \"from\": \"{}\"; {}", where, from, kExpected);
}

// from/value -> role/content.
ordered_json with_role(const ordered_json& message, const std::string& where) {
  if (message.contains("role")) return message;
  if (!message["from"].is_string()) throw UserError("{}: \"from\" is not text; {}", where, kExpected);
  ordered_json renamed = {{"role", share_gpt_role(message["from"].get<std::string>(), where)}};
  for (const auto& [key, value] : message.items())
    if (key != "from") renamed[key == "value" ? "content" : key] = value;
  return renamed;
}

ordered_json plain_message(const ordered_json& given, const std::string& where) {
  const ordered_json message = with_role(given, where);
  if (!message["role"].is_string()) throw UserError("{}: \"role\" is not text; {}", where, kExpected);
  ordered_json result = ordered_json::object();
  for (const auto& [key, value] : message.items()) {
    ordered_json plain = key == "content"      ? plain_content(value, where)
                         : key == "tool_calls" ? plain_tool_calls(value, where)
                                               : value;
    drop_nulls(plain);
    if (!plain.is_null() || key == "content") result[key] = std::move(plain);
  }
  if (!result.contains("content") && !result.contains("tool_calls"))
    throw UserError("{}: role `{}` has neither content nor tool_calls", where, result["role"].get<std::string>());
  return result;
}

}  // namespace

Cell classify_cell(const ordered_json* value) {
  if (value == nullptr || value->is_null()) return {};
  if (value->is_string()) return classify_text(value->get_ref<const std::string&>());
  if (value->is_object()) return {CellKind::unusable, "an object"};
  if (!value->is_array()) return {CellKind::text, {}};
  if (all_messages(*value)) return {CellKind::messages, {}};
  return {CellKind::unusable, fmt::format("a list whose elements are not messages; {}", kExpected)};
}

std::string cell_text(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

ordered_json& called_function(ordered_json& call) {
  return call.contains("function") && call["function"].is_object() ? call["function"] : call;
}

Conversation read_conversation(const ordered_json& row, const std::string& column, const std::string& where) {
  const ordered_json& cell = row.at(column);
  const ordered_json list = cell.is_string() ? parse_json(cell.get_ref<const std::string&>()).value : cell;
  Conversation result;
  for (size_t i = 0; i < list.size(); ++i) {
    result.renamed_keys |= !list[i].contains("role");
    result.messages.push_back(plain_message(list[i], fmt::format("{}, message {}", where, i + 1)));
  }
  if (const auto tools = row.find("tools"); tools != row.end() && column != "tools") {
    result.tools = object_list(*tools, "tools", where);
    drop_nulls(result.tools);
  }
  return result;
}

bool merge_system_into_user(ordered_json& messages) {
  const auto is_role = [](const char* role) { return [role](const ordered_json& m) { return m["role"] == role; }; };
  const auto end_of_system = std::find_if_not(messages.begin(), messages.end(), is_role("system"));
  const auto user = std::find_if(end_of_system, messages.end(), is_role("user"));
  if (end_of_system == messages.begin() || user == messages.end()) return false;
  std::string text;
  for (auto it = messages.begin(); it != end_of_system; ++it) text.append(content_of(*it)).append("\n\n");
  (*user)["content"] = text.append(content_of(*user));
  messages.erase(messages.begin(), end_of_system);
  return true;
}

ordered_json with_blank_contents(ordered_json messages) {
  for (auto& message : messages)
    if (message.contains("content") && message["content"].is_null()) message["content"] = "";
  return messages;
}

ordered_json with_text_arguments(ordered_json messages) {
  for (auto& message : messages) {
    if (!message.contains("tool_calls")) continue;
    for (auto& call : message["tool_calls"]) {
      ordered_json& function = called_function(call);
      if (function.contains("arguments")) function["arguments"] = python_json(function["arguments"]);
    }
  }
  return messages;
}

std::vector<std::string> tool_call_names(const ordered_json& messages) {
  std::vector<std::string> names;
  for (const auto& message : messages) {
    if (!message.contains("tool_calls")) continue;
    for (ordered_json call : message["tool_calls"])
      if (const auto& function = called_function(call); function.contains("name") && function["name"].is_string())
        names.push_back(function["name"]);
  }
  return names;
}

bool is_assistant(const ordered_json& message) { return message["role"] == "assistant"; }

std::string_view content_of(const ordered_json& message) {
  const auto content = message.find("content");
  const bool has_text = content != message.end() && content->is_string();
  return has_text ? std::string_view(content->get_ref<const std::string&>()) : std::string_view();
}

}  // namespace aitraining::data
