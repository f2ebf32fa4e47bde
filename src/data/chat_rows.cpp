#include "chat_rows.h"

#include <algorithm>
#include <optional>

#include "aitraining/core/error.h"
#include "rows.h"

namespace aitraining::data {

namespace {

using nlohmann::ordered_json;

// The template does not say which message it dislikes: it is the last of the shortest beginning that is refused.
size_t refused_message(const text::ChatTemplate& chat_template, const Conversation& conversation) {
  const ordered_json& messages = conversation.messages;
  for (size_t i = 0; i + 1 < messages.size(); ++i) {
    const ordered_json beginning(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    try {
      chat_template.render(beginning, conversation.tools, false);
    } catch (const text::TemplateError&) {
      return i;
    }
  }
  return messages.size() - 1;
}

text::Rendered render(const text::ChatTemplate& chat_template, Conversation& conversation, bool& system_moved,
                      const std::string& row_name) {
  size_t removed = 0;
  try {
    return chat_template.render(conversation.messages, conversation.tools, false);
  } catch (const text::TemplateError& error) {
    const size_t before = conversation.messages.size();
    if (!merge_system_into_user(conversation.messages)) {
      const size_t at = refused_message(chat_template, conversation);
      throw UserError("{}: the chat template refuses message {} (role `{}`): {}", row_name, at + 1,
                      conversation.messages[at]["role"].get<std::string>(), error.what());
    }
    removed = before - conversation.messages.size();
  }
  system_moved = true;
  try {
    return chat_template.render(conversation.messages, conversation.tools, false);
  } catch (const text::TemplateError& error) {
    const size_t at = refused_message(chat_template, conversation);
    throw UserError("{}: the chat template refuses message {} (role `{}`): {}", row_name, at + 1 + removed,
                    conversation.messages[at]["role"].get<std::string>(), error.what());
  }
}

std::optional<std::string> try_render(const text::ChatTemplate& chat_template, const ordered_json& messages,
                                      const ordered_json& tools) {
  try {
    return chat_template.render(messages, tools, false).text;
  } catch (const text::TemplateError&) {
    return std::nullopt;
  }
}

int64_t count_none(const std::string& text) {
  int64_t count = 0;
  for (const std::string_view word : {"None", "none", "null"})
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

// A null content stays null only for a template that tells it from "" and does not print it as a word.
void settle_null_contents(const text::ChatTemplate& chat_template, Conversation& conversation) {
  ordered_json blank = conversation.messages;
  bool changed = false;
  for (auto& message : blank) {
    if (!message.contains("content") || !message["content"].is_null()) continue;
    message["content"] = "";
    changed = true;
  }
  if (!changed) return;
  const auto with_null = try_render(chat_template, conversation.messages, conversation.tools);
  const auto with_blank = try_render(chat_template, blank, conversation.tools);
  const bool keep = with_null && (!with_blank || (with_null != with_blank && count_none(*with_null) <= count_none(*with_blank)));
  if (!keep) conversation.messages = std::move(blank);
}

class Flags {
 public:
  Flags(const text::Encoding& tokens, const text::Tokenizer& tokenizer)
      : tokens_(tokens), tokenizer_(tokenizer), flags_(tokens.ids.size(), 0) {}

  void mark(size_t begin, size_t end) {
    for (size_t i = first_ending_after(begin); i < flags_.size() && tokens_.begin[i] < end; ++i)
      flags_[i] |= tokens_.end[i] > begin;
  }

  void mark(const Turn& turn) {
    const size_t begin = turn.cut ? after_header(turn.begin) : turn.begin;
    mark(begin, end_of_turn(turn));
  }

  std::vector<uint8_t> take() { return std::move(flags_); }

 private:
  size_t first_ending_after(size_t offset) const {
    const auto it = std::upper_bound(tokens_.end.begin(), tokens_.end.end(), offset);
    return static_cast<size_t>(it - tokens_.end.begin());
  }

  // Comparing texts may have run a few characters into the special token that ends the header.
  size_t after_header(size_t begin) const {
    const size_t i = first_ending_after(begin);
    const bool inside = i < flags_.size() && tokens_.begin[i] < begin && tokenizer_.is_special(tokens_.ids[i]);
    return inside ? tokens_.end[i] : begin;
  }

  size_t end_of_turn(const Turn& turn) const {
    for (size_t i = first_ending_after(turn.tail); i < flags_.size() && tokens_.begin[i] < turn.limit; ++i)
      if (tokenizer_.is_special(tokens_.ids[i])) return tokens_.end[i];
    return std::max(turn.end, turn.tail);
  }

  const text::Encoding& tokens_;
  const text::Tokenizer& tokenizer_;
  std::vector<uint8_t> flags_;
};

}  // namespace

RenderedRow render_chat_row(const SplitFile& file, const Row& row, const std::string& column,
                            const text::ChatTemplate& chat_template, bool locate) {
  const std::string name = where(file, row.number);
  Conversation conversation = read_conversation(row.values, column, name);
  RenderedRow result;
  result.number = row.number;
  result.renamed_keys = conversation.renamed_keys;
  if (conversation.messages.empty()) return result;
  settle_null_contents(chat_template, conversation);
  text::Rendered rendered = render(chat_template, conversation, result.system_moved, name);
  result.text = std::move(rendered.text);
  if (!locate) return result;
  if (rendered.has_generation_tags) {
    result.generations = std::move(rendered.generations);
    return result;
  }
  LocatedTurns located = locate_turns(chat_template, conversation, result.text);
  result.turns = std::move(located.turns);
  result.dropped = located.dropped;
  return result;
}

std::vector<uint8_t> trained_flags(const RenderedRow& row, const text::Encoding& tokens,
                                   const text::Tokenizer& tokenizer) {
  Flags flags(tokens, tokenizer);
  for (const auto& span : row.generations) flags.mark(span.begin, span.end);
  for (const Turn& turn : row.turns) flags.mark(turn);
  return flags.take();
}

}  // namespace aitraining::data
