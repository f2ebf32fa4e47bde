#include <fmt/format.h>

#include "aitraining/config/config.h"
#include "aitraining/core/error.h"
#include "draft.h"
#include "field_value.h"

namespace aitraining::config {

nlohmann::ordered_json to_json(const TrainingParams& params) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const Field& field : field_table()) {
    if (!field.secret) json[std::string(field.name)] = to_json_value(get_value(params, field));
  }
  return json;
}

TrainingParams from_json(const nlohmann::ordered_json& json, const std::string& origin) {
  TrainingParams params = default_params();
  std::vector<std::string> problems;
  if (!json.is_object()) throw UserError("{}: an object of parameters is due", origin);
  for (const auto& [key, value] : json.items()) {
    const Field* field = find_field(key);
    if (!field || field->secret) {
      const Field* near = nearest_field(key);
      problems.push_back(
          fmt::format("{}: unknown key '{}'{}", origin, key,
                      near && !field ? fmt::format("; did you mean '{}'?", near->name) : ""));
      continue;
    }
    const std::string problem = assign_json(params, *field, value);
    if (!problem.empty()) problems.push_back(fmt::format("{}: {}: {}", origin, key, problem));
  }
  throw_problems(problems);
  return params;
}

}  // namespace aitraining::config
