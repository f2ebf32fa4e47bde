#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "aitraining/config/config.h"
#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"
#include "command_flags.h"
#include "resolve.h"
#include "suggest.h"
#include "task.h"

namespace aitraining::config {
namespace {

using Words = std::vector<std::string>;

Command text_command(Command::Kind kind, std::string text) {
  Command command;
  command.kind = kind;
  command.text = std::move(text);
  return command;
}

bool asks_for_help(const Words& arguments) {
  return std::ranges::any_of(arguments, [](const auto& a) { return a == "--help" || a == "-h"; });
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
  if (arguments.empty() || asks_for_help(arguments))
    return text_command(Command::Kind::help, help_text());
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

TaskChoice task_of(const std::string& word) {
  const auto choice = find_task(word);
  if (!choice) throw UserError("{}", task_problem(word));
  return *choice;
}

Command schema_command(const Words& arguments) {
  if (asks_for_help(arguments)) return text_command(Command::Kind::help, help_text());
  const std::string word = read_text_flags(arguments, {"--task"}, false)[0];
  const Task task = word.empty() ? Task::llm : task_of(word).task;
  return text_command(Command::Kind::print, json_schema(task).dump(2) + "\n");
}

Command completion_command(const Words& arguments) {
  if (asks_for_help(arguments)) return text_command(Command::Kind::help, help_text());
  if (arguments.size() != 1)
    throw UserError("completion needs one shell: aitraining completion bash|zsh|fish");
  return text_command(Command::Kind::print, completion_script(arguments[0]));
}

Command rank_command(const Words& arguments) {
  if (arguments.size() != 1) throw UserError("--run-rank needs one file");
  Command command;
  command.kind = Command::Kind::run_rank;
  command.rank_params = arguments[0];
  return command;
}

// What AutoTrainProject starts: the values come through standard input, which nobody else can read.
Command job_command(const Words& arguments) {
  if (!arguments.empty()) throw UserError("--run-job takes no argument");
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  const auto values = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!values.is_object()) throw UserError("--run-job: standard input is no JSON object");
  Command command;
  command.kind = Command::Kind::job;
  command.config = resolve_values(values, "LLMTrainingParams");
  return command;
}

// Commands of the reference that are not there.
constexpr std::array<std::string_view, 16> kLaterCommands{"api",
                                                          "app",
                                                          "chat",
                                                          "tui",
                                                          "portal",
                                                          "setup",
                                                          "spacerunner",
                                                          "text-classification",
                                                          "text-regression",
                                                          "token-classification",
                                                          "image-classification",
                                                          "image-regression",
                                                          "object-detection",
                                                          "sentence-transformers",
                                                          "extractive-qa",
                                                          "tabular"};

[[noreturn]] void refuse_command(const std::string& word) {
  if (word.starts_with("llm-") || word.starts_with("llm:") || word.starts_with("vlm:"))
    throw UserError("{}", task_problem(word));
  const std::string available = "llm, seq2seq, vlm, plan, env, tools, schema, completion";
  if (std::ranges::count(kLaterCommands, word)) {
    throw UserError("not supported yet in this build: command {} (available: {})", word, available);
  }
  Near near = nearest_names(word, split(available, ','));
  for (std::string& name : near.names) name = "'" + name + "'";
  throw UserError(
      "unknown command '{}'{}", word,
      near.names.empty() ? fmt::format(" (available: {})", available) : did_you_mean(near.names));
}

std::string checked_trainer(const std::string& trainer, Task task) {
  const Field* field = find_field("trainer", task);
  if (trainer.empty() || !field) return trainer;
  const std::string word = trainer == "generic" ? "default" : trainer;
  if (std::ranges::count(field->choices, word) || std::ranges::count(field->later, word))
    return word;
  throw UserError("{}", fmt::format(fmt::runtime(field->wrong_choice), trainer));
}

Command help_command(const CommandFlags& flags, Task task, const std::string& task_trainer) {
  const GivenFlag* trainer = flags.find("trainer");
  const std::string chosen = flags.help_trainer ? *flags.help_trainer
                             : trainer          ? trainer->value
                                                : task_trainer;
  return text_command(Command::Kind::help, help_text(task, checked_trainer(chosen, task)));
}

Command training_command(const Words& arguments, Purpose purpose = Purpose::train) {
  TaskWord word;
  if (!arguments.empty() && !arguments[0].starts_with("-")) {
    word.text = arguments[0];
    word.choice = find_task(word.text);
    if (!word.choice) refuse_command(word.text);
  }
  const Words rest(arguments.begin() + (word.text.empty() ? 0 : 1), arguments.end());
  const Task task = word.choice ? word.choice->task : Task::llm;
  CommandFlags flags = read_command_flags(rest, task);
  if (flags.help || flags.help_trainer)
    return help_command(flags, task, word.choice ? word.choice->trainer : "");
  if (flags.version)
    return text_command(Command::Kind::version, "aitraining " AITRAINING_VERSION "\n");
  Command command;
  command.kind = purpose == Purpose::plan ? Command::Kind::plan : Command::Kind::train;
  command.config = resolve(word, rest, std::move(flags), purpose);
  return command;
}

// The words of `arguments` that are plan's own, taken out of them: they may stand before the task
// too.
PlanRequest take_plan_flags(Words& arguments) {
  PlanRequest request;
  Words others;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const std::string name = word.starts_with("--") ? parameter_name(word) : "";
    if (name == "json" || name == "explain") {
      if (word.find('=') != std::string::npos) throw UserError("--{} takes no value", name);
      (name == "json" ? request.json : request.explain) = true;
    } else if (name == "assume_devices") {
      const size_t equals = word.find('=');
      const bool last = i + 1 == arguments.size() || arguments[i + 1].starts_with("-");
      if (equals == std::string::npos && last)
        throw UserError(
            "--assume-devices needs a value: 8, or with the memory of each GPU 8x80GiB");
      if (request.assumed_devices) throw UserError("--assume-devices is given twice; give it once");
      request.assumed_devices =
          equals == std::string::npos ? arguments[++i] : word.substr(equals + 1);
    } else {
      others.push_back(word);
    }
  }
  arguments = std::move(others);
  return request;
}

Command plan_command(Words arguments) {
  if (arguments.empty()) return text_command(Command::Kind::help, help_text());
  PlanRequest request = take_plan_flags(arguments);
  Command command = training_command(arguments, Purpose::plan);
  command.plan = std::move(request);
  return command;
}

Command environment_command(Words arguments) {
  if (asks_for_help(arguments)) return text_command(Command::Kind::help, help_text());
  Command command;
  command.kind = Command::Kind::environment;
  command.environment.json = std::erase(arguments, "--json") > 0;
  // accelerate writes this one with an underscore.
  for (std::string& word : arguments)
    if (word.starts_with("--config_file")) word.replace(0, 13, "--config-file");
  command.environment.config_file = read_text_flags(arguments, {"--config-file"}, false)[0];
  return command;
}

Command accelerate_command(const Words& arguments) {
  if (!arguments.empty() && arguments[0] == "env")
    return environment_command({arguments.begin() + 1, arguments.end()});
  throw UserError(
      "accelerate {}: only `accelerate env` is here. A training starts its own ranks: {}",
      arguments.empty() ? "" : arguments[0], "aitraining llm --train ...");
}

}  // namespace

Command parse_command_line(const Words& arguments) {
  if (arguments.empty()) return text_command(Command::Kind::help, help_text());
  const std::string& first = arguments[0];
  const Words rest(arguments.begin() + 1, arguments.end());
  if (first == "--run-rank") return rank_command(rest);
  if (first == "--run-job") return job_command(rest);
  if (first == "tools") return tools_command(rest);
  if (first == "plan") return plan_command(rest);
  if (first == "env") return environment_command(rest);
  if (first == "accelerate") return accelerate_command(rest);
  if (first == "schema") return schema_command(rest);
  if (first == "completion") return completion_command(rest);
  return training_command(arguments);
}

}  // namespace aitraining::config
