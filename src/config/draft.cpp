#include "draft.h"

#include <fmt/format.h>

#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"

namespace aitraining::config {

std::string Source::text() const {
  switch (origin) {
    case Origin::default_value:
      return "default";
    case Origin::file:
      return place;
    case Origin::environment:
      return "environment " + place;
    case Origin::flag:
      return "flag";
  }
  return "";
}

Source ResolvedConfig::origin(const std::string& field) const {
  const auto found = origins.find(field);
  return found == origins.end() ? Source{} : found->second;
}

Draft::Draft(Task task) {
  config.task = task;
  config.params = default_params(task);
}

void Draft::record(const Field& field, const Place& place, const std::string& problem) {
  const std::string name(field.name);
  labels[name] = place.label;
  config.origins[name] = place.source;
  if (problem.empty()) return;
  unreadable.insert(name);
  // Mending the value would only lead to the next message.
  if (field.available())
    problems.push_back(place.label + ": " + problem);
  else
    unsupported.push_back(place.label + ": " + unavailable_text(field));
}

void Draft::assign(const Field& field, std::string_view text, const Place& place) {
  record(field, place, assign_text(config.params, field, text));
}

void throw_problems(const std::vector<std::string>& problems) {
  if (problems.empty()) return;
  if (problems.size() == 1) throw UserError("{}", problems.front());
  throw UserError("{} problems:\n  {}", problems.size(), join(problems, "\n  "));
}

}  // namespace aitraining::config
