#include <algorithm>

#include <fmt/format.h>

#include "aitraining/config/config.h"
#include "aitraining/core/strings.h"
#include "field_text.h"

namespace aitraining::config {
namespace {

std::string help_line(const Field& field) {
  const std::string value = placeholder(field);
  const char* state = !field.never.empty()     ? " (not supported)"
                      : !field.not_yet.empty() ? " (not in this build)"
                                               : "";
  return fmt::format("  {}{}{}\n      {} [{}]{}\n", join(flag_spellings(field), ", "),
                     value.empty() ? "" : " ", value, field.help, default_text(field), state);
}

constexpr std::string_view kUsage =
    "Fine-tunes language models on CPUs and GPUs.\n\n"
    "  aitraining llm --train --model DIR --data-path DIR --project-name NAME [options]\n"
    "  aitraining --config FILE.yaml [options]        options given as flags win over the file\n"
    "  aitraining tools merge-llm-adapter --base-model-path DIR --adapter-path DIR --output-folder "
    "DIR\n"
    "  aitraining tools tokenize|logits --model DIR --input FILE.jsonl --output FILE\n"
    "  aitraining plan llm ... [--json] [--explain] [--assume-devices 8|8x80GiB]\n"
    "                                                 what a training would do and need; nothing "
    "runs\n"
    "  aitraining env [--json] [--config_file FILE]   versions, devices and limits of this "
    "machine\n"
    "  aitraining schema [--task llm|seq2seq|vlm]     JSON schema of the YAML file\n"
    "  aitraining completion bash|zsh|fish            completion script for a shell\n"
    "  aitraining --version | --help | --help-trainer sft|dpo|...\n\n"
    "Flags may be written with hyphens or underscores. Values in brackets are the defaults.\n\n"
    "Command\n"
    "  --train\n      Train; needed without --config\n"
    "  --config FILE\n      YAML file or URL with task, backend, base_model, project_name, data, "
    "log and params; several are applied left to right\n"
    "  --backend local\n      Where to run; only local\n"
    "  --help-trainer TRAINER\n      This help with the flags that the trainer reads\n";

std::string heading(Task task, const std::string& trainer) {
  const std::string only = trainer.empty() ? "" : ", trainer " + trainer;
  return task == Task::llm && only.empty()
             ? ""
             : fmt::format("\nParameters of {}{}\n", task_name(task), only);
}

}  // namespace

std::string help_text(Task task, const std::string& trainer) {
  std::string text = std::string(kUsage) + heading(task, trainer);
  std::optional<Group> group;
  for (const Field* field : fields_of(task)) {
    if (!trainer.empty() && !field->used_by(trainer)) continue;
    if (group != field->group) text += fmt::format("\n{}\n", group_title(field->group));
    group = field->group;
    text += help_line(*field);
  }
  return text;
}

std::string describe(const ResolvedConfig& config) {
  std::string text;
  for (const Field* field : fields_of(config.task)) {
    const auto source = config.origins.find(std::string(field->name));
    if (source == config.origins.end()) continue;
    text +=
        fmt::format("{} = {} ({})\n", field->name,
                    value_text(*field, get_value(config.params, *field)), source->second.text());
  }
  return text;
}

std::vector<ExplainedValue> explain(const ResolvedConfig& config) {
  std::vector<ExplainedValue> values;
  for (const Field* field : fields_of(config.task)) {
    const std::string name(field->name);
    const Source source = config.origin(name);
    const bool by_flag = source == Origin::flag && !source.place.empty();
    values.push_back({name, value_text(*field, get_value(config.params, *field)),
                      by_flag ? "flag " + source.place : source.text()});
  }
  return values;
}

bool is_secret_flag(const std::string& argument) {
  std::string name = argument;
  std::ranges::replace(name, '_', '-');
  return std::ranges::any_of(field_table(),
                             [&](const Field& f) { return f.secret && flag_name(f.name) == name; });
}

}  // namespace aitraining::config
