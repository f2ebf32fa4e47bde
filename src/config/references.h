#pragma once
#include <string>
#include <vector>

namespace aitraining::config {

// A text of the configuration file with each ${NAME} replaced by the environment's value.
struct Expanded {
  std::string text;
  std::vector<std::string> names{};  // the variables that were read
  std::string problem{};             // a variable that is not set
};
Expanded expand_references(const std::string& text);

}  // namespace aitraining::config
