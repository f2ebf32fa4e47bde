#include <algorithm>
#include <array>
#include <unordered_set>

#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"
#include "messages.h"
#include "rows.h"

namespace aitraining::data {

namespace {

using nlohmann::ordered_json;

constexpr std::array<const char*, 8> kReserved = {
    "autotrain_text",   "autotrain_label",   "autotrain_question",      "autotrain_answer",
    "autotrain_prompt", "autotrain_context", "autotrain_rejected_text", "autotrain_prompt_start"};

std::vector<std::string> columns_of(const std::vector<Row>& rows) {
  std::vector<std::string> names;
  std::unordered_set<std::string> seen;
  for (const Row& row : rows)
    for (const auto& [key, _] : row.values.items())
      if (seen.insert(key).second) names.push_back(key);
  return names;
}

const ordered_json* cell_of(const Row& row, const std::string& column) {
  const auto cell = row.values.find(column);
  return cell == row.values.end() ? nullptr : &*cell;
}

bool holds_messages(const std::vector<Row>& rows, const std::string& column) {
  return classify_cell(cell_of(rows.front(), column)).kind == CellKind::messages;
}

// "Text" and " text" are nearer to "text" than any misspelling.
std::optional<std::string> near_column(const std::string& wanted, const std::vector<std::string>& columns) {
  for (const auto& column : columns)
    if (to_lower(trim(column)) == to_lower(trim(wanted))) return column;
  return nearest(wanted, columns);
}

std::string quoted_list(const std::vector<std::string>& names) {
  std::vector<std::string> quoted;
  for (const auto& name : names) quoted.push_back("'" + name + "'");
  return "[" + join(quoted, ", ") + "]";
}

std::string hint_for(const std::vector<Row>& rows, const std::vector<std::string>& columns) {
  const auto chat = std::find_if(columns.begin(), columns.end(), [&](auto& c) { return holds_messages(rows, c); });
  if (chat == columns.end()) return {};
  return fmt::format(" Hint: Your dataset has a '{0}' column. Use --text-column {0} for chat format data.", *chat);
}

[[noreturn]] void refuse_column(const SplitFile& file, const std::vector<Row>& rows, const std::string& wanted,
                                const std::vector<std::string>& columns, const std::string& split_word) {
  const auto near = near_column(wanted, columns);
  throw UserError(
      "SFT trainer requires {} data to have columns: ['{}']. Columns ['{}'] not found in dataset. Available columns in "
      "your data: {}. File {}{}. Please ensure your CSV/JSON has the required columns.{}",
      split_word, wanted, wanted, quoted_list(columns), file.path.string(),
      near ? fmt::format(": did you mean `{}`?", *near) : "", hint_for(rows, columns));
}

void refuse_reserved(const SplitFile& file, const std::vector<std::string>& columns) {
  for (const char* name : kReserved)
    if (std::find(columns.begin(), columns.end(), name) != columns.end())
      throw UserError("{} is a reserved column name; rename this column of {}", name, file.path.string());
}

// Every row must hold the same kind; the kinds are looked at one by one, so the order of the rows does not matter.
bool check_cells(const SplitFile& file, const std::vector<Row>& rows, const std::string& column) {
  const Row* first = nullptr;
  CellKind kind = CellKind::missing;
  const auto name = [](CellKind k) { return k == CellKind::messages ? "a message list" : "text"; };
  for (const Row& row : rows) {
    const Cell cell = classify_cell(cell_of(row, column));
    if (cell.kind == CellKind::missing)
      throw UserError("{}: column `{}` is {}; every row needs a value there (\"\" for an empty text)",
                      where(file, row.number), column, cell_of(row, column) ? "null" : "missing");
    if (cell.kind == CellKind::unusable)
      throw UserError("{}: column `{}` holds {}", where(file, row.number), column, cell.problem);
    if (first == nullptr) {
      first = &row;
      kind = cell.kind;
    }
    if (cell.kind != kind)
      throw UserError("{}: column `{}` holds {} here, but {} in row {}; all rows must be of one kind",
                      where(file, row.number), column, name(cell.kind), name(kind), first->number);
  }
  return kind == CellKind::messages;
}

}  // namespace

ColumnChoice check_columns(const SplitFile& file, const std::vector<Row>& rows, const SftOptions& options,
                           const std::string& split_word) {
  AIT_CHECK(!rows.empty(), "no rows of {}", file.path.string());
  const auto columns = columns_of(rows);
  refuse_reserved(file, columns);
  const auto has = [&](const std::string& name) {
    return std::find(columns.begin(), columns.end(), name) != columns.end();
  };
  std::string column = options.text_column;
  if (!has(column)) {
    if (options.text_column_given || !has("messages") || !holds_messages(rows, "messages"))
      refuse_column(file, rows, column, columns, split_word);
    column = "messages";
  }
  return {column, check_cells(file, rows, column)};
}

}  // namespace aitraining::data
