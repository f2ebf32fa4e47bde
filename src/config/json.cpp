#include <fmt/format.h>

#include "aitraining/config/config.h"
#include "aitraining/core/error.h"
#include "draft.h"
#include "field_value.h"
#include "suggest.h"

namespace aitraining::config {
namespace {

std::vector<std::string> quoted_nearest(const std::string& key, Task task) {
  std::vector<std::string> names;
  for (const Field* field : fields_of(task)) names.emplace_back(field->name);
  names = nearest_names(key, names).names;
  for (std::string& name : names) name = "'" + name + "'";
  return names;
}

}  // namespace

nlohmann::ordered_json to_json(const TrainingParams& params, Task task) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const Field* field : fields_of(task)) {
    if (!field->secret) json[std::string(field->name)] = to_json_value(get_value(params, *field));
  }
  return json;
}

TrainingParams from_json(const nlohmann::ordered_json& json, const std::string& origin, Task task) {
  TrainingParams params = default_params(task);
  std::vector<std::string> problems;
  if (!json.is_object()) throw UserError("{}: an object of parameters is due", origin);
  for (const auto& [key, value] : json.items()) {
    const Field* field = find_field(key, task);
    if (!field || field->secret) {
      problems.push_back(fmt::format("{}: unknown key '{}'{}", origin, key,
                                     field ? "" : did_you_mean(quoted_nearest(key, task))));
      continue;
    }
    const std::string problem = assign_json(params, *field, value);
    if (!problem.empty()) problems.push_back(fmt::format("{}: {}: {}", origin, key, problem));
  }
  throw_problems(problems);
  return params;
}

}  // namespace aitraining::config
