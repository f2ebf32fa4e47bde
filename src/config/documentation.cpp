#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "aitraining/config/config.h"
#include "aitraining/core/strings.h"
#include "command_flags.h"
#include "field_text.h"

namespace aitraining::config {
namespace {

std::string escaped(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c == '|' || c == '<') result += '\\';
    result += c;
  }
  return result;
}

std::string meaning(const Field& field) {
  std::string text(field.help);
  if (!field.never.empty()) text += fmt::format(". **Not supported**: {}", field.never);
  if (!field.not_yet.empty()) text += fmt::format(". **Not in this build**: {}", field.not_yet);
  if (!field.later.empty())
    text += fmt::format(". **Not in this build**: {}", join(field.later, ", "));
  if (!field.environment.empty()) text += fmt::format(". Else from `{}`", field.environment);
  return text;
}

std::string row(const Field& field) {
  const std::string values = field.boolean() ? "true, false" : join(field.choices, ", ");
  const std::string key = field.file_key.empty()         ? ""
                          : field.file_key == field.name ? " (top level)"
                                                         : fmt::format(" (`{}`)", field.file_key);
  return fmt::format("| `{}`{} | {} | {} | {} | {} |\n", field.name, key,
                     values.empty() ? type_name(field).substr(2) : values, default_text(field),
                     field.trainers, escaped(meaning(field)));
}

// Rows of the fields that `chosen` takes, with a heading for each group.
template <class Chosen>
std::string tables(Task task, Chosen chosen) {
  std::string text;
  std::optional<Group> group;
  for (const Field* field : fields_of(task)) {
    if (!chosen(*field)) continue;
    if (group != field->group) {
      text += fmt::format(
          "\n### {}\n\n| name | values | default | trainers | meaning |\n|---|---|---|---|---|\n",
          group_title(field->group));
    }
    group = field->group;
    text += row(*field);
  }
  return text;
}

std::string shared_names(Task task) {
  std::vector<std::string> names;
  for (const Field* field : fields_of(task)) {
    if (field->tasks.contains(Task::llm)) names.push_back(fmt::format("`{}`", field->name));
  }
  return join(names, ", ");
}

// Shared with llm: named only. The rest: with its own default and meaning.
std::string other_task(Task task, std::string_view title) {
  return fmt::format(
             "\n## {} (`task: {}`)\n\nThis build cannot train it yet; its parameters are read and "
             "checked.\n\nAs in the language model's tables: {}.\n",
             title, task_name(task), shared_names(task)) +
         tables(task, [](const Field& field) { return !field.tasks.contains(Task::llm); });
}

}  // namespace

std::string flag_list(Task task) {
  std::vector<std::string> lines = command_flag_forms();
  for (const Field* field : fields_of(task)) {
    const std::string value = placeholder(*field);
    std::vector<std::string> flags = flag_spellings(*field);
    flags[0] += fmt::format("{}{} [{}]", value.empty() ? "" : " ", value, default_text(*field));
    lines.insert(lines.end(), flags.begin(), flags.end());
  }
  std::ranges::sort(lines);
  return join(lines, "\n") + "\n";
}

std::string parameters_markdown() {
  return "# Parameters\n\n"
         "Made from the parameter table in `src/config/table/`; a test compares this file with "
         "it.\n\n"
         "In YAML the names stand under `params`, or at the place in brackets; flags are the same "
         "names with `--` and hyphens (underscores work too). [configuration.md](configuration.md) "
         "tells how file, flags and environment go together.\n\n"
         "A parameter marked **Not in this build** is accepted with its default and refused with "
         "any other value. One that is given for another trainer than the run's has no effect, and "
         "the log says so.\n\n"
         "## Language models (`task: llm`)\n" +
         tables(Task::llm, [](const Field&) { return true; }) +
         other_task(Task::seq2seq, "Sequence to sequence") +
         other_task(Task::vlm, "Vision and language");
}

}  // namespace aitraining::config
