#include "yaml_text.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include <fmt/format.h>
#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>

#include "aitraining/core/error.h"
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
