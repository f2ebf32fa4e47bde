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

int64_t count_words(const std::string& text, const std::vector<std::string>& words) {
  int64_t count = 0;
  for (const std::string& word : words)
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

// Templates disagree about the form of turns with tool calls: contents null or "", arguments as an object or as text.
// Taken is the form that shows the most of the calls, then the one with the fewest nulls printed as a word, then the
// one that is nearest to the data.
void settle_form(const text::ChatTemplate& chat_template, Conversation& conversation) {
  const ordered_json& given = conversation.messages;
  const auto blank = with_blank_contents(given);
  const auto names = tool_call_names(given);
  std::vector<ordered_json> forms = {given};
  if (blank != given) forms.push_back(blank);
  if (!names.empty())
    for (size_t i = 0, count = forms.size(); i < count; ++i) forms.push_back(with_text_arguments(forms[i]));
  if (forms.size() == 1) return;
  const ordered_json* best = nullptr;
  std::pair<int64_t, int64_t> best_score;
  for (const ordered_json& form : forms) {
    const auto text = try_render(chat_template, form, conversation.tools);
    if (!text) continue;
    const std::pair score{count_words(*text, names), -count_words(*text, {"None", "none", "null"})};
    if (best != nullptr && score <= best_score) continue;
    best = &form;
    best_score = score;
  }
  if (best == nullptr) return;
  // The text form of a content is the easier one to find again in the rendering.
  const auto chosen_blank = with_blank_contents(*best);
  const auto same = try_render(chat_template, chosen_blank, conversation.tools);
  const bool take_blank = same && same == try_render(chat_template, *best, conversation.tools);
  conversation.messages = take_blank ? chosen_blank : ordered_json(*best);
}

class Flags {
 public:
  Flags(const text::Encoding& tokens, const text::Tokenizer& tokenizer, std::optional<int32_t> eos)
      : tokens_(tokens), tokenizer_(tokenizer), eos_(eos), flags_(tokens.ids.size(), 0) {}

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

  bool is_end(size_t i) const { return tokens_.ids[i] == eos_ || tokenizer_.is_special(tokens_.ids[i]); }

  size_t end_of_turn(const Turn& turn) const {
    size_t i = first_ending_after(turn.tail);
    const auto before_limit = [&](size_t at) { return at < flags_.size() && tokens_.begin[at] < turn.limit; };
    while (before_limit(i) && !is_end(i)) ++i;
    if (!before_limit(i)) return std::max(turn.end, turn.tail);
    // Several special tokens in a row: the end token of the tokenizer is the turn's last.
    for (size_t last = i; eos_ && before_limit(last) && is_end(last); ++last)
      if (tokens_.ids[last] == *eos_) return tokens_.end[last];
    return tokens_.end[i];
  }

  const text::Encoding& tokens_;
  const text::Tokenizer& tokenizer_;
  std::optional<int32_t> eos_;
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
  settle_form(chat_template, conversation);
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
                                   const text::Tokenizer& tokenizer, std::optional<int32_t> eos) {
  Flags flags(tokens, tokenizer, eos);
  for (const auto& span : row.generations) flags.mark(span.begin, span.end);
  for (const Turn& turn : row.turns) flags.mark(turn);
  return flags.take();
}

}  // namespace aitraining::data
