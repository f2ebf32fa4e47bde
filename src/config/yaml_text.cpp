#include "yaml_text.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include <fmt/format.h>
#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>

#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"
#include "text_check.h"

namespace aitraining::config {
namespace {

// Where a tab stands in the indentation of `line` or one before it: the parser then complains about
// something else.
std::optional<YAML::Mark> tab_before(const std::string& text, int line) {
  YAML::Mark mark;
  mark.line = mark.column = 0;
  bool indentation = true;
  for (char c : text) {
    if (indentation && c == '\t') return mark;
    if (c == '\n') {
      if (mark.line++ == line) return std::nullopt;
      mark.column = 0;
      indentation = true;
      continue;
    }
    indentation = indentation && c == ' ';
    ++mark.column;
  }
  return std::nullopt;
}

// The parser ends silently at some control characters, and what follows would be lost.
void check_characters(const std::string& name, const std::string& text) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
    throw UserError("{}:1:1: not readable as YAML: save the file as UTF-8, not UTF-16", name);
  const auto bad = find_bad_character(text);
  if (!bad) return;
  const auto line = std::count(text.begin(), text.begin() + static_cast<long>(bad->at), '\n');
  const size_t begin = bad->at == 0 ? std::string::npos : text.rfind('\n', bad->at - 1);
  throw UserError("{}:{}:{}: not readable as YAML: {}", name, line + 1,
                  bad->at - (begin == std::string::npos ? 0 : begin + 1) + 1, bad->what);
}

size_t indentation(std::string_view line) { return std::min(line.find_first_not_of(' '), line.size()); }

// Where the value of "key: value" begins; npos: the line has none.
size_t value_begin(std::string_view line) {
  const size_t colon = line.find(": ");
  const size_t comment = line.find('#'), quote = line.find_first_of("\"'");
  if (colon == std::string_view::npos || comment < colon || quote < colon) return std::string_view::npos;
  return line.find_first_not_of(' ', colon + 1);
}

bool closes(std::string_view line, size_t begin) {
  const char quote = line[begin];
  for (size_t i = begin + 1; i < line.size(); ++i) {
    if (quote == '"' && line[i] == '\\') {
      ++i;
    } else if (line[i] == quote) {
      return true;
    }
  }
  return false;
}

// YAML lets a quoted text go on over lines; a quote that was forgotten then swallows the keys below it without a word.
void check_quotes(const std::string& name, const std::string& text) {
  std::istringstream lines(text);
  std::optional<size_t> block;  // indentation of the key whose text block ("|", ">") this is
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (trim(line).empty()) continue;
    if (block && indentation(line) > *block) continue;
    block.reset();
    const size_t begin = value_begin(line);
    if (begin == std::string::npos) continue;
    if (line[begin] == '|' || line[begin] == '>') block = indentation(line);
    if ((line[begin] != '"' && line[begin] != '\'') || closes(line, begin)) continue;
    throw UserError("{}:{}:{}: not readable as YAML: this quote is not closed on its line (for a text of several lines use "
                    "a block, \"key: |\")", name, number, begin + 1);
  }
}

// Counts documents, and remembers where the last one begins.
class DocumentCounter : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    stands_still_ = count_ > 0 && mark.pos == start_.pos;
    start_ = mark;
    ++count_;
    inside_ = false;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { enter(mark); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { enter(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                const std::string&) override {
    enter(mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    enter(mark);
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    enter(mark);
  }
  void OnMapEnd() override {}

  int count() const { return count_; }
  bool stands_still() const { return stands_still_; }
  const YAML::Mark& start() const { return start_; }
  const YAML::Mark& second() const { return second_; }

 private:
  void enter(const YAML::Mark& mark) {
    if (count_ == 2 && !inside_) second_ = mark;
    inside_ = true;
  }
  int count_ = 0;
  bool stands_still_ = false, inside_ = false;
  YAML::Mark start_, second_;
};

void check_documents(const std::string& name, const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentCounter documents;
  while (parser.HandleNextDocument(documents)) {
    // At some stray marks (a comma that begins a line) the parser ends a document and never moves
    // on.
    if (documents.stands_still()) {
      throw UserError("{}: not readable as YAML: something here belongs to no key",
                      at(name, documents.start()));
    }
  }
  if (documents.count() > 1) {
    throw UserError("{}: holds {} documents; one is due", at(name, documents.second()),
                    documents.count());
  }
}

}  // namespace

std::string at(const std::string& file, const YAML::Mark& mark) {
  // An empty document has no place of its own.
  return fmt::format("{}:{}:{}", file, std::max(mark.line, 0) + 1, std::max(mark.column, 0) + 1);
}

YAML::Node parse_yaml(const std::string& name, const std::string& text) {
  check_characters(name, text);
  try {
    check_quotes(name, text);
    check_documents(name, text);
    return YAML::Load(text);
  } catch (const YAML::Exception& e) {
    if (const auto tab = tab_before(text, e.mark.line)) {
      throw UserError("{}: not readable as YAML: a tab in the indentation; use blanks",
                      at(name, *tab));
    }
    throw UserError("{}: not readable as YAML: {}", at(name, e.mark), e.msg);
  }
}

}  // namespace aitraining::config
