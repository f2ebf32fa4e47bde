#include "command_flags.h"

#include <algorithm>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "aitraining/core/strings.h"
#include "draft.h"
#include "reference_names.h"

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

CLI::Option* add_text(CLI::App& app, const std::string& flag) {
  return app.add_option(both_spellings(flag))
      ->expected(0, 1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->default_str(kNoValue);
}

CLI::Option* add_switch(CLI::App& app, const std::string& names) {
  return app.add_flag(names)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

CLI::Option* add_field(CLI::App& app, const Field& field) {
  const std::string flag = flag_name(field.name);
  if (!field.boolean()) return add_text(app, flag);
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

std::string unknown_flag(const std::string& argument) {
  // The part behind '=' may be a secret.
  const std::string name = parameter_name(argument), shown = argument.substr(0, argument.find('='));
  if (is_reference_parameter(name) || is_reference_command_flag(name)) {
    const Field* near =
        name == "gradient_accumulation_steps" ? find_field("gradient_accumulation") : nullptr;
    return fmt::format("not supported yet in this build: {}{}", flag_name(name),
                       near ? fmt::format(" (did you mean {}?)", flag_name(near->name)) : "");
  }
  if (name.starts_with("no_")) {
    const Field* negated = find_field(name.substr(3));
    if (negated && negated->boolean()) {
      return fmt::format("unrecognized arguments: {}; {} is off unless it is given", shown,
                         flag_name(negated->name));
    }
  }
  const Field* near = nearest_field(name);
  const auto command = nearest(name, {"train", "config", "backend", "help", "version"});
  const std::string suggestion = near ? flag_name(near->name) : command ? "--" + *command : "";
  return fmt::format("unrecognized arguments: {}{}", shown,
                     suggestion.empty() ? "; see aitraining --help"
                                        : fmt::format("; did you mean {}?", suggestion));
}

void report_extras(const std::vector<std::string>& extras, std::vector<std::string>& problems) {
  bool value_of_unknown = false;
  for (const std::string& extra : extras) {
    const bool flag = extra.size() > 1 && extra.front() == '-';
    if (flag) problems.push_back(unknown_flag(extra));
    // What follows an unknown flag is its value, perhaps a secret: it is not repeated.
    else if (!value_of_unknown)
      problems.push_back(fmt::format("unexpected argument '{}'", extra));
    value_of_unknown = flag && extra.find('=') == std::string::npos;
  }
}

}  // namespace

CommandFlags read_command_flags(const std::vector<std::string>& arguments) {
  CLI::App app;
  set_up(app);
  CommandFlags flags;
  CLI::Option* train = add_switch(app, "--train");
  CLI::Option* help = add_switch(app, "-h,--help");
  CLI::Option* version = add_switch(app, "-v,--version");
  CLI::Option* config = add_text(app, "--config");
  CLI::Option* backend = add_text(app, "--backend");
  std::vector<CLI::Option*> options;
  for (const Field& field : field_table()) options.push_back(add_field(app, field));
  parse(app, arguments, flags.problems);

  flags.train = !train->results().empty();
  flags.help = !help->results().empty();
  flags.version = !version->results().empty();
  flags.config_file = single_value(config->results(), "--config", flags.problems);
  flags.backend = single_value(backend->results(), "--backend", flags.problems);
  for (size_t i = 0; i < options.size(); ++i) {
    const Field& field = field_table()[i];
    const std::string flag = flag_name(field.name);
    if (auto value = single_value(options[i]->results(), flag, flags.problems)) {
      flags.given.push_back({&field, flag, std::move(*value)});
    }
  }
  report_extras(app.remaining(), flags.problems);
  return flags;
}

std::vector<std::string> read_text_flags(const std::vector<std::string>& arguments,
                                         const std::vector<std::string>& flags) {
  CLI::App app;
  set_up(app);
  std::vector<std::string> problems, values;
  std::vector<CLI::Option*> options;
  for (const std::string& flag : flags) options.push_back(add_text(app, flag));
  parse(app, arguments, problems);
  for (size_t i = 0; i < flags.size(); ++i) {
    const auto value = single_value(options[i]->results(), flags[i], problems);
    values.push_back(value.value_or(""));
    if (options[i]->results().empty())
      problems.push_back(fmt::format("{} must be specified", flags[i]));
  }
  for (const std::string& extra : app.remaining()) {
    const std::string shown = extra.substr(0, extra.find('='));
    if (!shown.starts_with("-")) continue;
    const auto near = nearest(shown, flags);
    problems.push_back(fmt::format("unrecognized arguments: {}{}", shown,
                                   near ? fmt::format("; did you mean {}?", *near) : ""));
  }
  throw_problems(problems);
  return values;
}

}  // namespace aitraining::config
