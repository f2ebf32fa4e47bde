#include "turns.h"

#include <algorithm>
#include <array>
#include <optional>

#include "aitraining/core/strings.h"
#include "marks.h"

namespace aitraining::data {

namespace {

using nlohmann::ordered_json;

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// How far two texts agree from their beginnings when white space does not count: the number of characters used of each,
// up to the last one that is not white space.
template <class Iterator>
std::pair<size_t, size_t> agreement(Iterator a, Iterator a_end, Iterator b, Iterator b_end) {
  const Iterator a_begin = a, b_begin = b;
  std::pair<size_t, size_t> used{0, 0};
  while (true) {
    a = std::find_if_not(a, a_end, is_space);
    b = std::find_if_not(b, b_end, is_space);
    if (a == a_end || b == b_end || *a != *b) return used;
    used = {static_cast<size_t>(++a - a_begin), static_cast<size_t>(++b - b_begin)};
  }
}

class Locator {
 public:
  Locator(const text::ChatTemplate& chat_template, const Conversation& conversation, const std::string& plain)
      : template_(chat_template), conversation_(conversation), messages_(conversation.messages), plain_(plain) {}

  std::optional<LocatedTurns> by_marks(const Placement& placement) {
    const MarkedMessages marked = mark_messages(messages_, placement);
    std::optional<MarkedText> read;
    try {
      read = read_marks(template_.render(marked.messages, conversation_.tools, false).text, messages_.size());
    } catch (const text::TemplateError&) {
      return std::nullopt;
    }
    if (!read || read->text != plain_) return std::nullopt;
    reset();
    for (size_t i = 0; i < messages_.size(); ++i) {
      const auto& at = read->positions[i];
      if (!is_assistant(messages_[i])) note_begin(i, marked.marked[i] ? at.open : find_from_cursor(i));
      else if (marked.marked[i]) add_marked(i, at);
      else add_unmarked(i, at.tail);
    }
    return finish();
  }

  // For templates whose output changes with the marks: each content in turn, from where the one before it ended.
  LocatedTurns by_search() {
    reset();
    for (size_t i = 0; i < messages_.size(); ++i) {
      if (!is_assistant(messages_[i])) {
        note_begin(i, find_from_cursor(i));
        continue;
      }
      const auto core = trim(content_of(messages_[i]));
      if (core.empty()) {
        add_unmarked(i, std::nullopt);
        continue;
      }
      const size_t begin = plain_.find(core, std::max(cursor_, prompt_end(i).value_or(0)));
      if (begin == std::string::npos) ++result_.dropped;
      else add(i, Turn{begin, begin + core.size(), begin + core.size()});
    }
    return finish();
  }

 private:
  void reset() {
    result_ = {};
    cursor_ = 0;
    begins_.assign(messages_.size(), std::nullopt);
    owners_.clear();
  }

  std::optional<size_t> find_from_cursor(size_t i) const {
    const auto core = trim(content_of(messages_[i]));
    const size_t begin = core.empty() ? std::string::npos : plain_.find(core, cursor_);
    return begin == std::string::npos ? std::nullopt : std::optional(begin);
  }

  void note_begin(size_t i, std::optional<size_t> begin) {
    begins_[i] = begin;
    if (begin) cursor_ = std::max(cursor_, *begin + trim(content_of(messages_[i])).size());
  }

  void add(size_t i, const Turn& turn) {
    begins_[i] = turn.begin;
    cursor_ = std::max({cursor_, turn.end, turn.tail});
    result_.turns.push_back(turn);
    owners_.push_back(i);
  }

  void add_marked(size_t i, const MarkPositions& at) {
    const std::string_view content = content_of(messages_[i]);
    Turn turn;
    if (at.open && at.close) {
      turn = {*at.open, *at.close};
    } else if (at.close) {  // the front was dropped
      const auto before = std::string_view(plain_).substr(0, *at.close);
      const auto used = agreement(content.rbegin(), content.rend(), before.rbegin(), before.rend());
      turn = {*at.close - used.second, *at.close};
      note_drop(turn, content.substr(0, content.size() - used.first));
    } else if (at.open) {  // the back was dropped
      const auto rest = std::string_view(plain_).substr(*at.open);
      const auto used = agreement(content.begin(), content.end(), rest.begin(), rest.end());
      turn = {*at.open, *at.open + used.second};
      note_drop(turn, content.substr(used.first));
    } else {  // dropped whole; tool calls may stand in its place
      result_.dropped += !trim(content).empty();
      if (at.tail || trim(content).empty()) add_unmarked(i, at.tail);
      return;
    }
    turn.tail = std::max(turn.end, at.tail.value_or(0));
    add(i, turn);
  }

  void note_drop(Turn& turn, std::string_view rest) {
    turn.cut = !trim(rest).empty();
    result_.dropped += turn.cut;
  }

  // Shows no content: the turn begins where the generation prompt ends, and holds the tool calls if there are any.
  void add_unmarked(size_t i, std::optional<size_t> tail) {
    const auto begin = prompt_end(i);
    if (begin && *begin >= cursor_) return add(i, Turn{*begin, *begin, std::max(*begin, tail.value_or(0))});
    if (tail) add(i, Turn{*tail, *tail, *tail});
  }

  // Length of the conversation before message i with a generation prompt, if the whole rendering begins with it.
  std::optional<size_t> prompt_end(size_t i) const {
    try {
      const ordered_json before(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(i));
      const auto prompt = template_.render(before, conversation_.tools, true).text;
      if (plain_.starts_with(prompt)) return prompt.size();
    } catch (const text::TemplateError&) {
    }
    return std::nullopt;
  }

  LocatedTurns finish() {
    for (size_t t = 0; t < result_.turns.size(); ++t) {
      Turn& turn = result_.turns[t];
      turn.limit = plain_.size();
      for (size_t i = owners_[t] + 1; i < begins_.size(); ++i) {
        if (!begins_[i] || *begins_[i] < turn.tail) continue;
        turn.limit = *begins_[i];
        break;
      }
    }
    return std::move(result_);
  }

  const text::ChatTemplate& template_;
  const Conversation& conversation_;
  const ordered_json& messages_;
  const std::string& plain_;
  LocatedTurns result_;
  std::vector<std::optional<size_t>> begins_;  // where each message's content begins
  std::vector<size_t> owners_;                 // the message of each turn
  size_t cursor_ = 0;
};

}  // namespace

LocatedTurns locate_turns(const text::ChatTemplate& chat_template, const Conversation& conversation,
                          const std::string& plain) {
  Locator locator(chat_template, conversation, plain);
  // From the most telling to the least intrusive: templates may trim contents, test them for being empty, or look into
  // those of user and tool messages.
  constexpr std::array<Placement, 4> kPlacements = {{{true, false}, {true, true}, {false, false}, {false, true}}};
  if (!has_mark_characters(plain))
    for (const Placement& placement : kPlacements)
      if (auto found = locator.by_marks(placement)) return std::move(*found);
  return locator.by_search();
}

}  // namespace aitraining::data
