#pragma once
// Text to one YAML document, with a place for whatever is wrong.
#include <string>

#include <yaml-cpp/yaml.h>

namespace aitraining::config {

// "run.yaml:4:7"
std::string at(const std::string& file, const YAML::Mark& mark);

// UserError with a line when `text` is no YAML, or several documents. Null for an empty text.
YAML::Node parse_yaml(const std::string& name, const std::string& text);

}  // namespace aitraining::config
