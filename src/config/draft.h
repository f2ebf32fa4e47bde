#pragma once
// A configuration while it is being put together: values with their places, and everything that is
// wrong so far.
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "aitraining/config/config.h"
#include "field_table.h"
#include "field_value.h"

namespace aitraining::config {

// Where a value stands: for `plan --explain`, and as the beginning of a message about it.
struct Place {
  Source source;
  std::string label;  // "run.yaml:4:7: params.lr" or "--lr"
};

struct Draft {
  ResolvedConfig config;
  std::map<std::string, std::string> labels;  // by field name, of what was given
  std::set<std::string>
      unreadable;  // fields whose value was refused: they still hold something else
  std::vector<std::string> problems;
  std::vector<std::string> unsupported;  // right, but not in this build: listed after the problems
  bool incomplete = false;               // a file could not be read: what is missing is not known
  std::string missing_at;  // the file that could hold what is missing, "run.yaml:1:1: "

  explicit Draft(Task task);
  bool given(std::string_view name) const { return labels.contains(std::string(name)); }
  const Field* field(std::string_view name) const { return find_field(name, config.task); }
  // Takes a value, or notes what is wrong with it.
  void assign(const Field& field, std::string_view text, const Place& place);
  // Notes where the value stood, and that it was refused unless `problem` is empty.
  void record(const Field& field, const Place& place, const std::string& problem);
};

// A program's values by name; `origin` is said in front of them in messages.
void apply_values(const nlohmann::ordered_json& values, const std::string& origin, Draft& draft);

struct Problem {
  const Field* field;
  Verdict verdict;
};
std::vector<Problem> find_problems(const TrainingParams& params, Task task);

// One UserError with all problems; returns when there are none.
void throw_problems(const std::vector<std::string>& problems);

// What has no effect or is not in this build, as notes for the log.
void add_notes(Draft& draft);

}  // namespace aitraining::config
