#include "yaml_schema.h"

#include <algorithm>

#include <fmt/format.h>

#include "aitraining/core/strings.h"
#include "draft.h"
#include "reference_names.h"

namespace aitraining::config {
namespace {

const std::vector<YamlSection>& sections() {
  static const std::vector<YamlSection> all = [] {
    std::vector<YamlSection> made{
        {.name = "",
         .keys = {{"base_model", "model"}, {"project_name", "project_name"}, {"log", "log"}},
         .sections = {"data", "params", "hub"},
         .words = {"task", "backend"}},
        {.name = "data",
         .keys = {{"path", "data_path"},
                  {"train_split", "train_split"},
                  {"valid_split", "valid_split"},
                  {"chat_template", "chat_template"}},
         .sections = {"column_mapping"},
         .words = {}},
        {.name = "column_mapping",
         .keys = {{"text_column", "text_column"}},
         .sections = {},
         .words = {}},
        {.name = "hub",
         .keys = {{"username", "username"}, {"token", "token"}, {"push_to_hub", "push_to_hub"}},
         .sections = {},
         .words = {}},
        {.name = "params", .keys = {}, .sections = {}, .words = {}}};
    for (const Field& field : field_table()) made.back().keys.emplace_back(field.name, field.name);
    return made;
  }();
  return all;
}

std::string place_of(const YamlSection& section) {
  if (section.name.empty()) return "at top level";
  return section.name == "column_mapping" ? "under data.column_mapping" : "under " + section.name;
}

bool has_key(const YamlSection& section, const std::string& key) {
  return std::ranges::count(section.known(), key) > 0;
}

// Where a parameter is usually written: its own section when it has one, else params.
std::string usual_place(const Field& field) {
  for (const YamlSection& section : sections()) {
    for (const auto& [key, name] : section.keys) {
      if (name == field.name) return fmt::format("'{}' {}", key, place_of(section));
    }
  }
  return "";
}

}  // namespace

const Field* YamlSection::field(std::string_view key) const {
  for (const auto& [known, name] : keys) {
    if (known == key) return find_field(name);
  }
  return nullptr;
}

const YamlSection* YamlSection::inner(std::string_view key) const {
  return std::ranges::count(sections, key) ? &yaml_section(key) : nullptr;
}

std::vector<std::string> YamlSection::known() const {
  std::vector<std::string> names = words;
  names.insert(names.end(), sections.begin(), sections.end());
  for (const auto& [key, field] : keys) names.push_back(key);
  return names;
}

const YamlSection& yaml_section(std::string_view name) {
  return *std::ranges::find(sections(), name, &YamlSection::name);
}

std::string unknown_yaml_key(const YamlSection& section, const std::string& key) {
  std::string name = key;
  std::ranges::replace(name, '-', '_');
  if (is_reference_parameter(name) || key == "sweep")
    return fmt::format("not supported yet in this build: {}", key);
  const std::string here = fmt::format("unknown key '{}' {}", key, place_of(section));
  for (const YamlSection& other : sections()) {
    if (has_key(other, key)) return fmt::format("{}: it belongs {}", here, place_of(other));
  }
  if (const auto near = nearest(key, section.known()))
    return fmt::format("{}; did you mean '{}'?", here, *near);
  if (const Field* field = nearest_field(key))
    return fmt::format("{}; did you mean {}?", here, usual_place(*field));
  return section.name == "params"
             ? here + "; docs/parameters.md lists all"
             : fmt::format("{} (known: {})", here, join(section.known(), ", "));
}

std::optional<std::string> trainer_of_task(const std::string& task) {
  if (task == "llm") return "";
  for (const char* trainer : {"sft", "orpo", "generic", "dpo", "reward"}) {
    if (task == fmt::format("llm-{}", trainer)) return trainer;
  }
  return std::nullopt;
}

std::string task_problem(const std::string& task) {
  return fmt::format("{}Task `{}` is not supported (available: llm, llm-sft, llm-generic)",
                     task.starts_with("llm-") ? "Invalid LLM training task: " : "", task);
}

}  // namespace aitraining::config
