#include "marks.h"

#include "aitraining/core/strings.h"
#include "messages.h"

namespace aitraining::data {

namespace {

using nlohmann::ordered_json;

// Plane 15, U+F0000..U+FFFFD: four bytes F3 B0..BF xx xx in UTF-8.
constexpr size_t kBytes = 4;
constexpr unsigned kFirst = 0xF0000, kKinds = 3;
constexpr size_t kMaxMessages = 0xFFFD / kKinds;
enum Kind : unsigned { kOpen, kClose, kTail };

std::string mark(size_t message, Kind kind) {
  const unsigned code = kFirst + static_cast<unsigned>(message) * kKinds + kind;
  return {static_cast<char>(0xF0 | code >> 18), static_cast<char>(0x80 | (code >> 12 & 0x3F)),
          static_cast<char>(0x80 | (code >> 6 & 0x3F)), static_cast<char>(0x80 | (code & 0x3F))};
}

bool is_mark(std::string_view text, size_t at) {
  return text[at] == '\xF3' && at + kBytes <= text.size() && static_cast<unsigned char>(text[at + 1]) >= 0xB0;
}

unsigned index_of(std::string_view text, size_t at) {
  const auto bits = [&](size_t i) { return static_cast<unsigned>(text[at + i]) & 0x3F; };
  return (3u << 18 | bits(1) << 12 | bits(2) << 6 | bits(3)) - kFirst;
}

void append_to_key(ordered_json& object, const std::string& suffix) {
  ordered_json marked = ordered_json::object();
  size_t left = object.size();
  for (const auto& [key, value] : object.items()) marked[--left == 0 ? key + suffix : key] = value;
  object = std::move(marked);
}

// As far back in a call as a mark can go: on its last argument (an object, or its JSON text), else on its name.
void mark_tool_calls(ordered_json& message, size_t i) {
  const auto calls = message.find("tool_calls");
  if (calls == message.end()) return;
  ordered_json& call = called_function(calls->back());
  const bool has_arguments = call.contains("arguments") && !call["arguments"].empty();
  if (!has_arguments && !call.contains("name")) return;
  ordered_json& target = call[has_arguments ? "arguments" : "name"];
  ordered_json& value = target.is_object() ? target.back() : target;
  if (value.is_string()) value = value.get<std::string>() + mark(i, kTail);
  else if (target.is_object()) append_to_key(target, mark(i, kTail));
}

}  // namespace

MarkedMessages mark_messages(const ordered_json& messages, const Placement& placement) {
  MarkedMessages result{messages, std::vector<bool>(messages.size(), false)};
  for (size_t i = 0; i < std::min(messages.size(), kMaxMessages); ++i) {
    ordered_json& message = result.messages[i];
    if (!placement.all_messages && !is_assistant(message)) continue;
    mark_tool_calls(message, i);
    if (!message.contains("content") || message["content"].is_null()) continue;
    const std::string content(content_of(message));
    const auto core = trim(content);
    if (placement.inside && core.empty()) continue;
    const size_t begin = placement.inside ? static_cast<size_t>(core.data() - content.data()) : 0;
    const size_t end = placement.inside ? begin + core.size() : content.size();
    message["content"] = content.substr(0, begin) + mark(i, kOpen) + content.substr(begin, end - begin) +
                         mark(i, kClose) + content.substr(end);
    result.marked[i] = true;
  }
  return result;
}

std::optional<MarkedText> read_marks(const std::string& marked, size_t num_messages) {
  MarkedText result;
  result.text.reserve(marked.size());
  result.positions.resize(num_messages);
  for (size_t at = 0; at < marked.size();) {
    if (!is_mark(marked, at)) {
      result.text.push_back(marked[at++]);
      continue;
    }
    const unsigned index = index_of(marked, at);
    if (index / kKinds >= num_messages) return std::nullopt;
    MarkPositions& positions = result.positions[index / kKinds];
    auto& slot = index % kKinds == kOpen ? positions.open : index % kKinds == kClose ? positions.close : positions.tail;
    if (slot) return std::nullopt;
    slot = result.text.size();
    at += kBytes;
  }
  return result;
}

bool has_mark_characters(std::string_view text) {
  for (size_t at = text.find('\xF3'); at != std::string_view::npos; at = text.find('\xF3', at + 1))
    if (is_mark(text, at)) return true;
  return false;
}

}  // namespace aitraining::data
