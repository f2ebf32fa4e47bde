#include "suggest.h"

#include <algorithm>

#include <fmt/format.h>

#include "aitraining/core/strings.h"

namespace aitraining::config {
namespace {

constexpr size_t kMostSuggestions = 3;

// A third of the letters may be wrong; beyond that the suggestion would be a guess.
int allowed_distance(std::string_view word) {
  return std::max<int>(1, static_cast<int>(word.size()) / 3);
}

}  // namespace

Near nearest_names(std::string_view word, const std::vector<std::string>& candidates) {
  Near near{.distance = allowed_distance(word) + 1, .names = {}};
  for (const std::string& candidate : candidates) {
    const int distance = edit_distance(word, candidate);
    if (distance > near.distance || distance > allowed_distance(word)) continue;
    if (distance < near.distance) near.names.clear();
    near.distance = distance;
    near.names.push_back(candidate);
  }
  return near;
}

NearFields nearest_by_other_name(std::string_view word, Task task) {
  std::vector<std::string> names;
  for (const Field* field : fields_of(task))
    names.insert(names.end(), field->also_called.begin(), field->also_called.end());
  const Near near = nearest_names(word, names);
  NearFields found{.distance = near.distance, .fields = {}};
  for (const Field* field : fields_of(task)) {
    const auto is_near = [&](const std::string& name) {
      return std::ranges::count(near.names, name) > 0;
    };
    if (std::ranges::any_of(field->also_called, is_near)) found.fields.push_back(field);
  }
  return found;
}

std::vector<std::string> nearest_parameters(const std::string& name, Task task) {
  std::vector<std::string> known;
  for (const Field* field : fields_of(task)) known.emplace_back(field->name);
  Near near = nearest_names(name, known);
  const NearFields other = nearest_by_other_name(name, task);
  if (near.names.empty() || other.distance < near.distance) {
    near.names.clear();
    for (const Field* field : other.fields) near.names.emplace_back(field->name);
  }
  for (std::string& found : near.names) found = "'" + found + "'";
  return near.names;
}

std::string did_you_mean(const std::vector<std::string>& suggestions) {
  if (suggestions.empty()) return {};
  const size_t count = std::min(suggestions.size(), kMostSuggestions);
  return fmt::format(
      "; did you mean {}?",
      join({suggestions.begin(), suggestions.begin() + static_cast<long>(count)}, " or "));
}

}  // namespace aitraining::config
