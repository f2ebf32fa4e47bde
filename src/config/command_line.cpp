#include <algorithm>
#include <cstdlib>
#include <map>

#include <fmt/format.h>

#include "aitraining/config/config.h"
#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"
#include "command_flags.h"
#include "draft.h"
#include "reference_names.h"

namespace aitraining::config {
namespace {

using Words = std::vector<std::string>;

Command text_command(Command::Kind kind, std::string text) {
  Command command;
  command.kind = kind;
  command.text = std::move(text);
  return command;
}

void read_environment(Draft& draft) {
  for (const Field& field : field_table()) {
    if (field.environment.empty() || draft.given(field.name)) continue;
    const std::string name(field.environment);
    const char* value = std::getenv(name.c_str());
    if (value && *value) draft.assign(field, value, Origin::environment, name);
  }
}

// After the file, so that flags win.
void apply_flags(const CommandFlags& flags, Draft& draft) {
  for (const GivenFlag& given : flags.given)
    draft.assign(*given.field, given.value, Origin::flag, given.flag);
  if (flags.backend && *flags.backend != "local") {
    draft.problems.push_back(
        fmt::format("--backend: Invalid backend: {} (this build runs on this machine only: local)",
                    *flags.backend));
  }
}

void settle(Draft& draft) {
  TrainingParams& params = draft.config.params;
  for (const auto& [field, text, missing] : find_problems(params)) {
    const std::string name(field->name);
    if (draft.unreadable.contains(name))
      continue;  // reported already; what it holds now is only the default
    const std::string place = draft.given(name) ? draft.where[name] : missing ? "" : name;
    draft.problems.push_back(place.empty() ? text : place + ": " + text);
  }
  throw_problems(draft.problems);
  if (!params.apply_chat_template) params.chat_template = "none";
  params.project_name = project_folder(params);
  add_notes(draft);
}

Command train_command(const CommandFlags& flags, bool llm) {
  Draft draft;
  draft.problems = flags.problems;
  if (!flags.train && !flags.config_file) {
    draft.problems.emplace_back(llm ? "nothing to do: add --train"
                                    : "nothing to do: give a command (aitraining llm "
                                      "--train ...) or --config FILE");
  }
  if (flags.config_file) read_yaml(*flags.config_file, draft);
  apply_flags(flags, draft);
  read_environment(draft);
  settle(draft);
  Command command;
  command.kind = Command::Kind::train;
  command.config = std::move(draft.config);
  return command;
}

// Tools and their flags, all with a value and all needed.
const std::map<std::string, Words>& tools() {
  static const std::map<std::string, Words> all{
      {"merge-llm-adapter", {"--base-model-path", "--adapter-path", "--output-folder"}},
      {"logits", {"--model", "--input", "--output"}},
      {"tokenize", {"--model", "--input", "--output"}}};
  return all;
}

Words tool_names() {
  Words names;
  for (const auto& [name, flags] : tools()) names.push_back(name);
  return names;
}

Command tools_command(const Words& arguments) {
  const bool help =
      std::ranges::any_of(arguments, [](const auto& a) { return a == "--help" || a == "-h"; });
  if (arguments.empty() || help) return text_command(Command::Kind::help, help_text());
  const std::string& name = arguments[0];
  if (name == "convert_to_kohya")
    throw UserError("not supported yet in this build: tools convert_to_kohya");
  const auto tool = tools().find(name);
  if (tool == tools().end())
    throw UserError("unknown tool '{}' (available: {})", name, join(tool_names(), ", "));
  const auto values = read_text_flags({arguments.begin() + 1, arguments.end()}, tool->second);
  nlohmann::ordered_json request{{"tool", name}};
  for (size_t i = 0; i < values.size(); ++i) request[parameter_name(tool->second[i])] = values[i];
  Command command;
  command.kind = Command::Kind::tool;
  command.tool_request = request.dump();
  return command;
}

[[noreturn]] void refuse_command(const std::string& word) {
  if (is_reference_command(word)) {
    throw UserError("not supported yet in this build: command {} (available: llm, tools)", word);
  }
  const auto near = nearest(word, {"llm", "tools"});
  throw UserError("unknown command '{}'{}", word,
                  near ? fmt::format("; did you mean '{}'?", *near) : " (available: llm, tools)");
}

}  // namespace

Command parse_command_line(const Words& arguments) {
  if (arguments.empty()) return text_command(Command::Kind::help, help_text());
  const std::string& first = arguments[0];
  if (first == "--run-rank") {
    if (arguments.size() != 2) throw UserError("--run-rank needs one file");
    Command command;
    command.kind = Command::Kind::run_rank;
    command.rank_params = arguments[1];
    return command;
  }
  if (first == "tools") return tools_command({arguments.begin() + 1, arguments.end()});
  const bool llm = first == "llm";
  if (!llm && !first.starts_with("-")) refuse_command(first);
  const CommandFlags flags =
      read_command_flags({arguments.begin() + (llm ? 1 : 0), arguments.end()});
  if (flags.help) return text_command(Command::Kind::help, help_text());
  if (flags.version)
    return text_command(Command::Kind::version, "aitraining " AITRAINING_VERSION "\n");
  return train_command(flags, llm);
}

}  // namespace aitraining::config
