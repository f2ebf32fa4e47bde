#pragma once
// Which known name a wrong one was most probably meant for.
#include <string>
#include <string_view>
#include <vector>

#include "field_table.h"

namespace aitraining::config {

struct Near {
  int distance = 0;                // letters that differ; meaningless without names
  std::vector<std::string> names;  // all equally near, in the candidates' order
};
Near nearest_names(std::string_view word, const std::vector<std::string>& candidates);

struct NearFields {
  int distance = 0;
  std::vector<const Field*> fields;
};
// By what other tools call a parameter.
NearFields nearest_by_other_name(std::string_view word, Task task);

// Names of parameters, or of what other tools call them, near an unknown one; quoted.
std::vector<std::string> nearest_parameters(const std::string& name, Task task);

// "; did you mean 'a' or 'b'?"; empty without suggestions. They are quoted by the caller.
std::string did_you_mean(const std::vector<std::string>& suggestions);

}  // namespace aitraining::config
