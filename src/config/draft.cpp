#include "draft.h"

#include <fmt/format.h>

#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"
#include "field_value.h"

namespace aitraining::config {

void Draft::record(const Field& field, Origin origin, const std::string& place,
                   const std::string& problem) {
  const std::string name(field.name);
  where[name] = place;
  config.origins[name] = origin;
  if (problem.empty()) return;
  unreadable.insert(name);
  problems.push_back(place + ": " + problem);
}

void Draft::assign(const Field& field, std::string_view text, Origin origin,
                   const std::string& place) {
  record(field, origin, place, assign_text(config.params, field, text));
}

void Draft::assign_null_value(const Field& field, Origin origin, const std::string& place) {
  record(field, origin, place, assign_null(config.params, field));
}

const Field* nearest_field(std::string_view word) {
  std::vector<std::string> names;
  std::vector<const Field*> owners;
  for (const Field& field : field_table()) {
    names.emplace_back(field.name);
    names.insert(names.end(), field.also_called.begin(), field.also_called.end());
    owners.resize(names.size(), &field);
  }
  const auto near = nearest(word, names);
  if (!near) return nullptr;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == *near) return owners[i];
  }
  return nullptr;
}

void throw_problems(const std::vector<std::string>& problems) {
  if (problems.empty()) return;
  if (problems.size() == 1) throw UserError("{}", problems.front());
  throw UserError("{} problems:\n  {}", problems.size(), join(problems, "\n  "));
}

}  // namespace aitraining::config
