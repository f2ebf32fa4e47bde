#pragma once
// Which key of the configuration file stands where, and which field it sets.
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "field_table.h"

namespace aitraining::config {

struct YamlSection {
  std::string name;  // "" (top level), "data", "column_mapping", "hub", "params"
  std::vector<std::pair<std::string, std::string>>
      keys;                           // key -> field; params: every field by its own name
  std::vector<std::string> sections;  // nested ones
  std::vector<std::string> words;     // keys that are no fields

  const Field* field(std::string_view key) const;
  const YamlSection* inner(std::string_view key) const;
  std::vector<std::string> known() const;
};

const YamlSection& yaml_section(std::string_view name);
// The message for a key that `section` does not have: another section, the nearest name, or not in
// this build.
std::string unknown_yaml_key(const YamlSection& section, const std::string& key);

// "llm-sft" -> "sft"; "llm" -> "" (params decide); nullopt: no such task.
std::optional<std::string> trainer_of_task(const std::string& task);
std::string task_problem(const std::string& task);

}  // namespace aitraining::config
