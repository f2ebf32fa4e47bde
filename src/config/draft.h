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

namespace aitraining::config {

struct Draft {
  ResolvedConfig config;
  std::map<std::string, std::string> where;  // field name -> "run.yaml:4:7: params.lr" or "--lr"
  std::set<std::string>
      unreadable;  // fields whose value was refused: they still hold something else
  std::vector<std::string> problems;

  Draft() { config.params = default_params(); }
  bool given(std::string_view name) const { return where.contains(std::string(name)); }
  // Takes a value, or notes what is wrong with it.
  void assign(const Field& field, std::string_view text, Origin origin, const std::string& place);
  void assign_null_value(const Field& field, Origin origin, const std::string& place);
  // Notes where the value stood, and that it was refused unless `problem` is empty.
  void record(const Field& field, Origin origin, const std::string& place,
              const std::string& problem);
};

struct Problem {
  const Field* field;
  std::string text;
  bool missing = false;  // a required value: the text is a whole sentence
};
std::vector<Problem> find_problems(const TrainingParams& params);

// The field that a wrong name was most probably meant for, also by what other tools call it; null:
// none is near.
const Field* nearest_field(std::string_view word);

// One UserError with all problems; returns when there are none.
void throw_problems(const std::vector<std::string>& problems);

// Fields from `path` that no flag sets. Problems go to the draft; UserError when the file is no
// YAML map at all.
void read_yaml(const std::string& path, Draft& draft);

// What has no effect or is not in this build, as notes for the log.
void add_notes(Draft& draft);

}  // namespace aitraining::config
