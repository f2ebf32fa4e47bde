// The JSON schema of the configuration file: editors complete and check YAML with it.
#include <algorithm>

#include "aitraining/config/config.h"
#include "aitraining/core/strings.h"
#include "field_text.h"
#include "field_value.h"
#include "task.h"
#include "yaml_schema.h"

namespace aitraining::config {
namespace {

using Json = nlohmann::ordered_json;

std::string schema_type(const Field& field) {
  if (field.boolean()) return "boolean";
  if (field.map()) return "object";
  const std::string type = type_name(field);
  return type == "a whole number" ? "integer" : type == "a number" ? "number" : "string";
}

void add_range(const Range& range, Json& schema) {
  if (!range.min) return;
  Json bounds{{range.above_min ? "exclusiveMinimum" : "minimum", *range.min}};
  if (range.max) bounds[range.below_max ? "exclusiveMaximum" : "maximum"] = *range.max;
  if (range.or_else)
    schema["anyOf"] = Json::array({bounds, Json{{"const", *range.or_else}}});
  else
    schema.update(bounds);
}

void add_choices(const Field& field, Json& schema) {
  if (field.choices.empty()) return;
  Json values = field.choices;
  for (const std::string& value : field.later) values.push_back(value);
  for (const auto& [written, taken] : field.synonyms) values.push_back(written);
  if (field.optional() || !field.null_means.empty()) {
    if (!std::ranges::count(field.choices, "none")) values.push_back("none");
    values.push_back(nullptr);
  }
  schema["enum"] = std::move(values);
}

Json types(const Field& field) {
  Json names = Json::array({schema_type(field)});
  // Choices such as `no` and `true` are booleans to an editor's YAML parser.
  if (field.list) names.push_back("array");
  if (field.optional() || !field.null_means.empty()) names.push_back("null");
  return names.size() == 1 ? names[0] : names;
}

Json field_schema(const Field& field) {
  Json schema{{"description", field.help}};
  if (field.choices.empty()) schema["type"] = types(field);
  add_choices(field, schema);
  add_range(field.range, schema);
  if (field.initial != Value("") && !field.secret) schema["default"] = to_json_value(field.initial);
  if (field.secret) schema["writeOnly"] = true;
  if (!field.missing.empty()) schema["minLength"] = 1;
  if (field.map()) schema["additionalProperties"] = Json{{"type", "string"}};
  if (field.trainers != "all") schema["x-trainers"] = split(field.trainers, ',');
  if (!field.also_called.empty()) schema["x-also-called"] = field.also_called;
  schema["x-group"] = group_title(field.group);
  if (!field.available()) schema["x-not-in-this-build"] = unavailable_text(field);
  return schema;
}

Json task_schema(Task task) {
  Json words = Json::array();
  for (const std::string& word : task_words()) {
    if (find_task(word)->task == task) words.push_back(word);
  }
  return {{"description", "What to train, and optionally its trainer"}, {"enum", words}};
}

Json section_schema(Task task, const YamlSection& section) {
  Json properties = Json::object();
  if (section.path.empty()) {
    properties["task"] = task_schema(task);
    properties["backend"] = {{"description", "Where to run"}, {"enum", Json::array({"local"})}};
  }
  for (const auto& [key, field] : section.keys) properties[key] = field_schema(*field);
  for (const std::string& name : section.sections)
    properties[name] = section_schema(task, *yaml_section(task, inner_path(section, name)));
  return {{"type", Json::array({"object", "null"})},
          {"additionalProperties", false},
          {"properties", properties}};
}

}  // namespace

Json json_schema(Task task) {
  Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
              {"title", "aitraining configuration: " + std::string(task_name(task))}};
  schema.update(section_schema(task, *yaml_section(task, "")));
  schema["type"] = "object";
  schema["required"] = Json::array({"task", "backend"});
  return schema;
}

}  // namespace aitraining::config
