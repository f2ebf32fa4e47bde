#include "command_flags.h"

#include <algorithm>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "aitraining/config/config.h"
#include "aitraining/core/strings.h"
#include "draft.h"
#include "suggest.h"

namespace aitraining::config {
namespace {

// CLI11 takes the next word as a value whatever it is, so `--model --data-path x` would train a
// model "--data-path". An option whose value may be absent leaves flags alone; this text, which no
// shell can pass, then marks the gap.
const std::string kNoValue("\0missing", 8);

std::string underscored(std::string name) {
  std::replace(name.begin() + 2, name.end(), '-', '_');
  return name;
}

std::string both_spellings(const std::string& flag) {
  const std::string other = underscored(flag);
  return other == flag ? flag : flag + "," + other;
}

CLI::Option* add_text(CLI::App& app, const std::string& flag, std::string_view second = {}) {
  std::string names = both_spellings(flag);
  if (!second.empty()) names += "," + both_spellings(flag_name(second));
  return app.add_option(names)
      ->expected(0, 1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->default_str(kNoValue);
}

CLI::Option* add_switch(CLI::App& app, const std::string& names) {
  return app.add_flag(names)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

CLI::Option* add_field(CLI::App& app, const Field& field) {
  const std::string flag = flag_name(field.name);
  if (!field.boolean()) return add_text(app, flag, field.second_name);
  if (!field.has_negation()) return add_switch(app, both_spellings(flag));
  const std::string negated = "--no-" + flag.substr(2);
  std::string names = both_spellings(flag) + ",!" + negated;
  if (underscored(negated) != negated) names += ",!" + underscored(negated);
  return add_switch(app, names);
}

void set_up(CLI::App& app) {
  app.set_help_flag();
  app.allow_extras();
}

void parse(CLI::App& app, std::vector<std::string> arguments, std::vector<std::string>& problems) {
  std::ranges::reverse(arguments);  // CLI11 takes them from the back
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& e) {
    problems.emplace_back(e.what());
  }
}

std::optional<std::string> single_value(const std::vector<std::string>& values,
                                        const std::string& flag,
                                        std::vector<std::string>& problems) {
  if (values.empty()) return std::nullopt;
  if (values.size() > 1) {
    problems.push_back(fmt::format("{} is given {} times; give it once", flag, values.size()));
  } else if (values.front() == kNoValue) {
    problems.push_back(fmt::format("{} needs a value", flag));
  } else {
    return values.front();
  }
  return std::nullopt;
}

// Flags of the reference that start something else than a training.
std::string other_action(const std::string& name) {
  if (name == "deploy")
    return "not supported yet in this build: --deploy (Deploy is not implemented yet)";
  if (name == "inference")
    return "not supported yet in this build: --inference (the saved model loads in transformers; "
           "its "
           "README.md shows how)";
  if (name == "interactive")
    return "not supported yet in this build: --interactive (give the values as flags or in a file)";
  return {};
}

std::vector<std::string> known_flags(Task task) {
  std::vector<std::string> flags;
  for (const std::string& form : command_flag_forms())
    flags.push_back(form.substr(0, form.find_first_of(" ,")));
  for (const Field* field : fields_of(task)) {
    const std::string flag = flag_name(field->name);
    flags.push_back(flag);
    if (!field->second_name.empty()) flags.push_back(flag_name(field->second_name));
    if (field->has_negation()) flags.push_back("--no-" + flag.substr(2));
  }
  return flags;
}

std::vector<std::string> nearest_flags(const std::string& name, Task task) {
  std::vector<std::string> names;
  const std::vector<std::string> flags = known_flags(task);
  for (const std::string& flag : flags) names.push_back(parameter_name(flag));
  const Near near = nearest_names(name, names);
  const NearFields other = nearest_by_other_name(name, task);
  std::vector<std::string> suggestions;
  if (!near.names.empty() && near.distance <= other.distance) {
    for (size_t i = 0; i < names.size(); ++i) {
      if (std::ranges::count(near.names, names[i])) suggestions.push_back(flags[i]);
    }
  } else {
    for (const Field* field : other.fields) suggestions.push_back(flag_name(field->name));
  }
  return suggestions;
}

std::string unknown_flag(const std::string& argument, Task task) {
  // The part behind '=' may be a secret.
  const std::string name = parameter_name(argument), shown = argument.substr(0, argument.find('='));
  if (std::string other = other_action(name); !other.empty()) return other;
  std::string text = "unrecognized arguments: " + shown;
  if (name.starts_with("no_")) {
    const Field* negated = find_field(name.substr(3), task);
    if (negated && negated->boolean())
      return fmt::format("{}; {} is off unless it is given", text, flag_name(negated->name));
  }
  const std::vector<Task> tasks = tasks_with_field(name);
  if (!tasks.empty()) text += fmt::format(" (a parameter of {})", task_name(tasks.front()));
  const std::string suggestion = did_you_mean(nearest_flags(name, task));
  return text + (suggestion.empty() ? "; see aitraining --help" : suggestion);
}

// Words behind a flag whose value is a secret ("--token= hf_x"): never repeated.
bool follows_secret(const std::vector<std::string>& arguments, const std::string& word) {
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string& before = arguments[i - 1];
    if (arguments[i] == word && is_secret_flag(before.substr(0, before.find('=')))) return true;
    if (arguments[i] == word && i > 1 && is_secret_flag(arguments[i - 2])) return true;
  }
  return false;
}

void report_extras(const std::vector<std::string>& extras,
                   const std::vector<std::string>& arguments, Task task,
                   std::vector<std::string>& problems) {
  bool value_of_unknown = false;
  for (const std::string& extra : extras) {
    const bool flag = extra.size() > 1 && extra.front() == '-';
    if (flag) problems.push_back(unknown_flag(extra, task));
    // What follows an unknown flag is its value, perhaps a secret: it is not repeated.
    else if (!value_of_unknown)
      problems.push_back(fmt::format("unexpected argument '{}'",
                                     follows_secret(arguments, extra) ? "***" : extra));
    value_of_unknown = flag && extra.find('=') == std::string::npos;
  }
}

void take_config_files(const std::vector<std::string>& values, CommandFlags& flags) {
  for (const std::string& value : values) {
    if (value == kNoValue || value.empty())
      flags.problems.emplace_back("--config needs a file or URL");
    else
      flags.config_files.push_back(value);
  }
}

}  // namespace

const std::vector<std::string>& command_flag_forms() {
  static const std::vector<std::string> forms{
      "--train",       "--config FILE",          "--backend local",          "--help, -h",
      "--version, -v", "--help-trainer TRAINER", "--preview-trainer TRAINER"};
  return forms;
}

const GivenFlag* CommandFlags::find(std::string_view name) const {
  const auto found =
      std::ranges::find_if(given, [&](const GivenFlag& flag) { return flag.field->name == name; });
  return found == given.end() ? nullptr : &*found;
}

CommandFlags read_command_flags(const std::vector<std::string>& arguments, Task task) {
  CLI::App app;
  set_up(app);
  CommandFlags flags;
  CLI::Option* train = add_switch(app, "--train");
  CLI::Option* help = add_switch(app, "-h,--help");
  CLI::Option* version = add_switch(app, "-v,--version");
  CLI::Option* config = add_text(app, "--config");
  CLI::Option* backend = add_text(app, "--backend");
  CLI::Option* help_trainer = add_text(app, "--help-trainer");
  CLI::Option* preview_trainer = add_text(app, "--preview-trainer");
  std::vector<CLI::Option*> options;
  for (const Field* field : fields_of(task)) options.push_back(add_field(app, *field));
  parse(app, arguments, flags.problems);

  flags.train = !train->results().empty();
  flags.help = !help->results().empty();
  flags.version = !version->results().empty();
  take_config_files(config->results(), flags);
  flags.backend = single_value(backend->results(), "--backend", flags.problems);
  flags.help_trainer = single_value(help_trainer->results(), "--help-trainer", flags.problems);
  if (auto other = single_value(preview_trainer->results(), "--preview-trainer", flags.problems))
    flags.help_trainer = other;
  for (size_t i = 0; i < options.size(); ++i) {
    const Field& field = *fields_of(task)[i];
    const std::string flag = flag_name(field.name);
    if (auto value = single_value(options[i]->results(), flag, flags.problems))
      flags.given.push_back({&field, flag, std::move(*value)});
  }
  report_extras(app.remaining(), arguments, task, flags.problems);
  return flags;
}

std::vector<std::string> read_text_flags(const std::vector<std::string>& arguments,
                                         const std::vector<std::string>& flags, bool required) {
  CLI::App app;
  set_up(app);
  std::vector<std::string> problems, values;
  std::vector<CLI::Option*> options;
  for (const std::string& flag : flags) options.push_back(add_text(app, flag));
  parse(app, arguments, problems);
  for (size_t i = 0; i < flags.size(); ++i) {
    const auto value = single_value(options[i]->results(), flags[i], problems);
    values.push_back(value.value_or(""));
    if (required && options[i]->results().empty())
      problems.push_back(fmt::format("{} must be specified", flags[i]));
  }
  bool value_of_unknown = false;
  for (const std::string& extra : app.remaining()) {
    const std::string shown = extra.substr(0, extra.find('='));
    const bool flag = shown.starts_with("-");
    if (flag) {
      problems.push_back(fmt::format("unrecognized arguments: {}{}", shown,
                                     did_you_mean(nearest_names(shown, flags).names)));
    } else if (!value_of_unknown) {
      problems.push_back(fmt::format("unexpected argument '{}'", extra));
    }
    value_of_unknown = flag && shown.size() == extra.size();
  }
  throw_problems(problems);
  return values;
}

}  // namespace aitraining::config
