#pragma once
// Which key of the configuration file stands where, and which field it sets.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "field_table.h"

namespace aitraining::config {

struct YamlSection {
  std::string path;  // "" (top level), "data", "data.column_mapping", "hub", "params"
  std::vector<std::pair<std::string, const Field*>> keys;
  std::vector<std::string> sections{};  // nested ones
  std::vector<std::string> words{};     // keys that are no fields

  const Field* field(std::string_view key) const;
  std::vector<std::string> known() const;
};

// Of a task; null: there is no such section.
const YamlSection* yaml_section(Task task, std::string_view path);
std::string inner_path(const YamlSection& section, std::string_view key);

// The message for a key that `section` does not have: another section, the nearest name, or not in
// this build.
std::string unknown_yaml_key(Task task, const YamlSection& section, const std::string& key);

}  // namespace aitraining::config
