#include "yaml_schema.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "aitraining/config/config.h"
#include "aitraining/core/strings.h"
#include "suggest.h"

namespace aitraining::config {
namespace {

using Sections = std::vector<YamlSection>;

Sections make_sections(Task task) {
  Sections made{
      {.path = "", .keys = {}, .sections = {"data", "hub", "params"}, .words = {"task", "backend"}},
      {.path = "data", .keys = {}, .sections = {"column_mapping"}},
      {.path = "data.column_mapping", .keys = {}},
      {.path = "hub", .keys = {}},
      {.path = "params", .keys = {}}};
  for (const Field* field : fields_of(task)) {
    made.back().keys.emplace_back(field->name, field);
    if (!field->second_name.empty()) made.back().keys.emplace_back(field->second_name, field);
    if (field->file_key.empty()) continue;
    const size_t dot = field->file_key.rfind('.');
    const bool nested = dot != std::string_view::npos;
    const auto path = nested ? field->file_key.substr(0, dot) : std::string_view();
    std::ranges::find(made, path, &YamlSection::path)
        ->keys.emplace_back(field->file_key.substr(nested ? dot + 1 : 0), field);
  }
  return made;
}

const Sections& sections(Task task) {
  static const std::array<Sections, std::size(kTasks)> all{
      make_sections(Task::llm), make_sections(Task::seq2seq), make_sections(Task::vlm)};
  return all[static_cast<size_t>(task)];
}

std::string place_of(const YamlSection& section) {
  return section.path.empty() ? "at top level" : "under " + section.path;
}

std::vector<std::string> quoted(const std::vector<std::string>& keys) {
  std::vector<std::string> result;
  for (const std::string& key : keys) result.push_back("'" + key + "'");
  return result;
}

// Where a parameter is usually written: its own section when it has one, else params.
std::string usual_place(Task task, const Field& field) {
  for (const YamlSection& section : sections(task)) {
    for (const auto& [key, owner] : section.keys) {
      if (owner == &field) return fmt::format("'{}' {}", key, place_of(section));
    }
  }
  return "";
}

// A parameter by its own name or by what other tools call it, wherever it belongs.
Near nearest_anywhere(Task task, const std::string& key) {
  std::vector<std::string> names;
  for (const Field* field : fields_of(task)) names.emplace_back(field->name);
  Near near = nearest_names(key, names);
  const NearFields other = nearest_by_other_name(key, task);
  if (other.distance < near.distance) near = {.distance = other.distance, .names = {}};
  if (other.distance == near.distance) {
    for (const Field* field : other.fields) near.names.emplace_back(field->name);
  }
  for (std::string& name : near.names) name = usual_place(task, *find_field(name, task));
  return near;
}

std::string other_tasks(Task task, const std::string& key) {
  for (Task other : tasks_with_field(key)) {
    if (other != task) return fmt::format(" (a parameter of {})", task_name(other));
  }
  return "";
}

}  // namespace

const Field* YamlSection::field(std::string_view key) const {
  for (const auto& [known, field] : keys) {
    if (known == key) return field;
  }
  return nullptr;
}

std::vector<std::string> YamlSection::known() const {
  std::vector<std::string> names = words;
  names.insert(names.end(), sections.begin(), sections.end());
  for (const auto& [key, field] : keys) names.push_back(key);
  return names;
}

const YamlSection* yaml_section(Task task, std::string_view path) {
  const auto found = std::ranges::find(sections(task), path, &YamlSection::path);
  return found == sections(task).end() ? nullptr : &*found;
}

std::string inner_path(const YamlSection& section, std::string_view key) {
  return section.path.empty() ? std::string(key) : fmt::format("{}.{}", section.path, key);
}

std::string unknown_yaml_key(Task task, const YamlSection& section, const std::string& key) {
  if (key == "sweep" && section.path.empty()) {
    return "not supported yet in this build: sweep (start one run per set of values from a shell "
           "loop)";
  }
  const std::string here = fmt::format("unknown key '{}' {}", key, place_of(section));
  if (key == "<<") return here + ": merge keys are not supported, write the values out";
  for (const YamlSection& other : sections(task)) {
    if (std::ranges::count(other.known(), key))
      return fmt::format("{}: it belongs {}", here, place_of(other));
  }
  const Near inside = nearest_names(key, section.known()), outside = nearest_anywhere(task, key);
  const bool stay = !inside.names.empty() && inside.distance <= outside.distance;
  const std::string suggestion =
      here + other_tasks(task, key) + did_you_mean(stay ? quoted(inside.names) : outside.names);
  if (stay || !outside.names.empty()) return suggestion;
  return section.path == "params"
             ? suggestion + "; docs/parameters.md lists all"
             : fmt::format("{} (known: {})", suggestion, join(section.known(), ", "));
}

}  // namespace aitraining::config
