#include <fmt/format.h>

#include "aitraining/config/config.h"
#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"
#include "draft.h"
#include "field_value.h"
#include "suggest.h"

namespace aitraining::config {
namespace {

using Json = nlohmann::ordered_json;

// As a person's or a program's own value, where from_json reads what to_json wrote.
std::string assign_given(TrainingParams& params, const Field& field, const Json& value) {
  if (field.secret && !value.is_null() && !value.is_string()) return "a text is due";
  if (value.is_null()) {
    if (!field.optional()) return assign_null(params, field);
  } else if (value.is_string()) {
    return assign_text(params, field, value.get<std::string>());
  } else if (value.is_array() && field.list) {
    std::vector<std::string> parts;
    for (const Json& part : value) {
      if (!part.is_string()) return "a list of texts is due";
      parts.push_back(part.get<std::string>());
    }
    return assign_text(params, field, join(parts, ","));
  }
  return assign_json(params, field, value);
}

}  // namespace

Json to_json(const TrainingParams& params, Task task) {
  Json json = Json::object();
  for (const Field* field : fields_of(task)) {
    if (!field->secret) json[std::string(field->name)] = to_json_value(get_value(params, *field));
  }
  return json;
}

TrainingParams from_json(const Json& json, const std::string& origin, Task task) {
  TrainingParams params = default_params(task);
  std::vector<std::string> problems;
  if (!json.is_object()) throw UserError("{}: an object of parameters is due", origin);
  for (const auto& [key, value] : json.items()) {
    const Field* field = find_field(key, task);
    if (!field || field->secret) {
      problems.push_back(fmt::format("{}: unknown key '{}'{}", origin, key,
                                     field ? "" : did_you_mean(nearest_parameters(key, task))));
      continue;
    }
    const std::string problem = assign_json(params, *field, value);
    if (!problem.empty()) problems.push_back(fmt::format("{}: {}: {}", origin, key, problem));
  }
  throw_problems(problems);
  return params;
}

Json changed_values(const TrainingParams& params, Secrets secrets, Task task) {
  Json values = Json::object();
  for (const Field* field : fields_of(task)) {
    const Value value = get_value(params, *field);
    if (field->secret && secrets == Secrets::left_out) continue;
    if (value != field->initial) values[std::string(field->name)] = to_json_value(value);
  }
  return values;
}

StringMap secret_environment(const TrainingParams& params, Task task) {
  StringMap variables;
  for (const Field* field : fields_of(task)) {
    const Value value = get_value(params, *field);
    const auto* text = std::get_if<std::string>(&value);
    if (field->secret && text) variables[std::string(field->environment)] = *text;
  }
  return variables;
}

void apply_values(const Json& values, const std::string& origin, Draft& draft) {
  for (const auto& [key, value] : values.items()) {
    const Field* field = draft.field(key);
    if (!field) {
      draft.problems.push_back(
          fmt::format("{}: unknown parameter '{}'{}", origin, key,
                      did_you_mean(nearest_parameters(key, draft.config.task))));
      continue;
    }
    const Place place{{Origin::file, origin}, origin + "." + key};
    draft.record(*field, place, assign_given(draft.config.params, *field, value));
  }
}

}  // namespace aitraining::config
