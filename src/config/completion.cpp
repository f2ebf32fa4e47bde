// Completion scripts: which word comes first, the flags of each task, and the choices of a flag.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "aitraining/config/config.h"
#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"
#include "command_flags.h"
#include "field_text.h"
#include "suggest.h"

namespace aitraining::config {
namespace {

const std::vector<std::string> kCommands{"llm", "seq2seq", "vlm",    "plan",
                                         "env", "tools",   "schema", "completion"};
const std::vector<std::string> kTools{"merge-llm-adapter", "tokenize", "logits"};
const std::vector<std::string> kShells{"bash", "zsh", "fish"};

std::vector<std::string> command_flags() {
  std::vector<std::string> flags;
  for (const std::string& form : command_flag_forms())
    flags.push_back(form.substr(0, form.find_first_of(" ,")));
  return flags;
}

std::vector<std::string> flags_of(Task task) {
  std::vector<std::string> flags = command_flags();
  for (const Field* field : fields_of(task)) {
    const auto spellings = flag_spellings(*field);
    flags.insert(flags.end(), spellings.begin(), spellings.end());
  }
  return flags;
}

// Flags whose value is one of a few, over all tasks.
std::map<std::string, std::set<std::string>> choices() {
  std::map<std::string, std::set<std::string>> all{{"--backend", {"local"}}};
  for (const Field& field : field_table())
    all[flag_name(field.name)].insert(field.choices.begin(), field.choices.end());
  all["--help-trainer"] = all["--preview-trainer"] = all["--trainer"];
  std::erase_if(all, [](const auto& entry) { return entry.second.empty(); });
  return all;
}

std::vector<std::string> words(const std::set<std::string>& set) {
  return {set.begin(), set.end()};
}

// Flags whose value is a path, by what they are called.
std::vector<std::string> path_flags() {
  return {"--config",
          "--model",
          "--data-path",
          "--project-name",
          "--input",
          "--output",
          "--adapter-path",
          "--base-model-path",
          "--output-folder",
          "--chat-template",
          "--resume-from-checkpoint"};
}

std::string bash() {
  std::string cases;
  for (const auto& [flag, values] : choices())
    cases += fmt::format("    {}) COMPREPLY=($(compgen -W \"{}\" -- \"$word\")); return ;;\n", flag,
                         join(words(values), " "));
  std::string tasks;
  for (Task task : kTasks) {
    tasks += fmt::format("    {0}|{0}-*|{0}:*) flags=\"{1}\" ;;\n", task_name(task),
                         join(flags_of(task), " "));
  }
  return fmt::format(
      "# bash completion of aitraining:  source <(aitraining completion bash)\n"
      "_aitraining() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} flags\n"
      "  local command=${{COMP_WORDS[1]}}\n"
      "  COMPREPLY=()\n"
      "  case $before in\n"
      "    {}) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n"
      "{}"
      "  esac\n"
      "  if ((COMP_CWORD == 1)) && [[ $word != -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"{}\" -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  case $command in\n"
      "    tools) COMPREPLY=($(compgen -W \"{}\" -- \"$word\")); return ;;\n"
      "    completion) COMPREPLY=($(compgen -W \"{}\" -- \"$word\")); return ;;\n"
      "    schema) COMPREPLY=($(compgen -W \"--task\" -- \"$word\")); return ;;\n"
      "    env) COMPREPLY=($(compgen -W \"--json --config-file\" -- \"$word\")); return ;;\n"
      "    plan) flags=\"llm seq2seq vlm --json --explain --assume-devices {}\" ;;\n"
      "{}"
      "    *) flags=\"{}\" ;;\n"
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$flags\" -- \"$word\"))\n"
      "}}\n"
      "complete -o filenames -F _aitraining aitraining\n",
      join(path_flags(), "|"), cases, join(kCommands, " "), join(kTools, " "), join(kShells, " "),
      join(flags_of(Task::llm), " "), tasks, join(flags_of(Task::llm), " "));
}

// The bash function under zsh's own emulation of it: one script to keep right.
std::string zsh() {
  return "#compdef aitraining\n"
         "# zsh completion of aitraining:  source <(aitraining completion zsh)\n"
         "autoload -U +X bashcompinit && bashcompinit\n" +
         bash();
}

std::string fish_quoted(std::string_view text) {
  std::string result = "'";
  for (char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

std::string fish_field(const Field& field, const std::string& condition) {
  std::string text;
  for (const std::string& flag : flag_spellings(field)) {
    text += fmt::format("complete -c aitraining -n {} -l {} -d {}", fish_quoted(condition),
                        flag.substr(2), fish_quoted(field.help));
    if (!field.boolean() && field.choices.empty()) text += " -r";
    if (!field.choices.empty())
      text += fmt::format(" -x -a {}", fish_quoted(join(field.choices, " ")));
    text += "\n";
  }
  return text;
}

std::string fish() {
  std::string text =
      "# fish completion of aitraining:  aitraining completion fish | source\n"
      "complete -c aitraining -n __fish_use_subcommand -f -a " +
      fish_quoted(join(kCommands, " ")) + "\n";
  text += fmt::format("complete -c aitraining -n '__fish_seen_subcommand_from tools' -f -a {}\n",
                      fish_quoted(join(kTools, " ")));
  text +=
      fmt::format("complete -c aitraining -n '__fish_seen_subcommand_from completion' -f -a {}\n",
                  fish_quoted(join(kShells, " ")));
  text +=
      "complete -c aitraining -n '__fish_seen_subcommand_from schema' -l task -x -a 'llm seq2seq "
      "vlm'\n";
  text +=
      "complete -c aitraining -n '__fish_seen_subcommand_from env' -l json -l config-file\n"
      "complete -c aitraining -n '__fish_seen_subcommand_from plan' -l json -l explain\n"
      "complete -c aitraining -n '__fish_seen_subcommand_from plan' -l assume-devices -x\n";
  for (const std::string& flag : command_flags())
    text += fmt::format("complete -c aitraining -l {}\n", flag.substr(2));
  for (Task task : kTasks) {
    const std::string condition =
        task == Task::llm
            ? "not __fish_seen_subcommand_from seq2seq vlm tools schema completion env"
            : fmt::format("__fish_seen_subcommand_from {}", task_name(task));
    for (const Field* field : fields_of(task)) text += fish_field(*field, condition);
  }
  return text;
}

}  // namespace

std::string completion_script(const std::string& shell) {
  if (shell == "bash") return bash();
  if (shell == "zsh") return zsh();
  if (shell == "fish") return fish();
  throw UserError("no completion for '{}' (available: {}){}", shell, join(kShells, ", "),
                  did_you_mean(nearest_names(shell, kShells).names));
}

}  // namespace aitraining::config
