#include <algorithm>
#include <optional>
#include <set>

#include "aitraining/core/error.h"
#include "rows.h"

namespace aitraining::data {

namespace {

// Offset of the first byte that is not part of well-formed UTF-8.
std::optional<size_t> first_bad_utf8(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  for (size_t i = 0; i < text.size();) {
    const unsigned lead = byte(i);
    const size_t length = lead < 0x80 ? 1 : lead >= 0xC2 && lead < 0xE0 ? 2 : lead >= 0xE0 && lead < 0xF0 ? 3
                          : lead >= 0xF0 && lead < 0xF5 ? 4 : 0;
    if (length == 0 || i + length > text.size()) return i;
    for (size_t k = 1; k < length; ++k)
      if ((byte(i + k) & 0xC0) != 0x80) return i;
    const unsigned second = length > 2 ? byte(i + 1) : 0;
    if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) || (lead == 0xF0 && second < 0x90) ||
        (lead == 0xF4 && second > 0x8F))
      return i;
    i += length;
  }
  return std::nullopt;
}

// RFC 4180, with any of \r\n, \n, \r as the end of a record. A quote inside an unquoted field is a plain character.
class Records {
 public:
  Records(std::string_view text, char separator, std::string path)
      : text_(text), separator_(separator), path_(std::move(path)) {}

  // The next record that is not an empty line; false at the end of the file.
  bool next(std::vector<std::string>& fields) {
    while (at_ < text_.size()) {
      record_line_ = line_;
      fields.clear();
      bool quoted = false;
      do {
        fields.emplace_back();
        quoted |= read_field(fields.back());
      } while (take(separator_));
      end_record();
      if (fields.size() > 1 || quoted || !fields[0].empty()) return true;
    }
    return false;
  }
  int64_t record_line() const { return record_line_; }

 private:
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void end_record() {
    if (at_ >= text_.size()) return;
    if (take('\r')) take('\n');
    else at_ += 1;
    ++line_;
  }

  bool read_field(std::string& field) {
    if (!take('"')) {
      const char stops[] = {separator_, '\r', '\n'};
      const size_t end = std::min(text_.find_first_of(std::string_view(stops, 3), at_), text_.size());
      field.assign(text_.substr(at_, end - at_));
      at_ = end;
      return false;
    }
    const int64_t opened = line_;
    while (true) {
      const size_t quote = text_.find('"', at_);
      if (quote == std::string_view::npos)
        throw UserError("{}:{}: the quote that opens here is never closed", path_, opened);
      const auto part = text_.substr(at_, quote - at_);
      field.append(part);
      line_ += std::count(part.begin(), part.end(), '\n');
      at_ = quote + 1;
      if (!take('"')) break;
      field.push_back('"');
    }
    if (at_ < text_.size() && text_[at_] != separator_ && text_[at_] != '\r' && text_[at_] != '\n')
      throw UserError("{}:{}: text after the closing quote of a field (a quote inside a field is written twice: \"\")",
                      path_, line_);
    return true;
  }

  std::string_view text_;
  char separator_;
  std::string path_;
  size_t at_ = 0;
  int64_t line_ = 1, record_line_ = 1;
};

// Names are kept as written, blanks too; a name that is empty gets the one that pandas gives it.
void name_columns(std::vector<std::string>& header, const std::string& path) {
  std::set<std::string> seen;
  for (size_t i = 0; i < header.size(); ++i) {
    if (header[i].empty()) header[i] = fmt::format("Unnamed: {}", i);
    if (!seen.insert(header[i]).second)
      throw UserError("{}:1: column `{}` stands twice in the header; rename one of the two", path, header[i]);
  }
}

}  // namespace

std::vector<Row> read_separated(const MappedFile& bytes, std::string_view text, char separator) {
  const std::string path = bytes.path().string();
  if (const auto bad = first_bad_utf8(text)) {
    const auto before = text.substr(0, *bad);
    throw UserError("{}:{}: byte 0x{:02x} is not UTF-8; save the file as UTF-8", path,
                    1 + std::count(before.begin(), before.end(), '\n'), static_cast<unsigned char>(text[*bad]));
  }
  Records records(text, separator, path);
  std::vector<std::string> header, fields;
  std::vector<Row> rows;
  if (!records.next(header)) return rows;
  name_columns(header, path);
  while (records.next(fields)) {
    if (fields.size() != header.size())
      throw UserError("{}:{}: this row has {} field{}, the header has {}; put fields that hold a separator or a line "
                      "break in double quotes",
                      path, records.record_line(), fields.size(), fields.size() == 1 ? "" : "s", header.size());
    Row row{static_cast<int64_t>(rows.size()) + 1, nlohmann::ordered_json::object()};
    for (size_t i = 0; i < header.size(); ++i) row.values.emplace(header[i], std::move(fields[i]));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace aitraining::data
