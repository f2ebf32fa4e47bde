#include "resolve.h"

#include <cstdlib>

#include <fmt/format.h>

#include "aitraining/core/error.h"
#include "draft.h"
#include "yaml_file.h"

namespace aitraining::config {
namespace {

using Files = std::vector<YamlFile>;

// All that can be read; one that cannot does not hide what is wrong elsewhere.
Files load_files(const std::vector<std::string>& paths, std::vector<std::string>& problems) {
  Files files;
  for (const std::string& path : paths) {
    try {
      files.push_back(load_yaml(path));
    } catch (const UserError& e) {
      problems.emplace_back(e.what());
    }
  }
  return files;
}

// Of the last file that has the key.
std::optional<YamlWord> last_word(const Files& files, const std::string& key) {
  for (size_t i = files.size(); i-- > 0;) {
    if (auto word = files[i].word(key)) return word;
  }
  return std::nullopt;
}

std::optional<TaskChoice> task_in(const Files& files) {
  const auto word = last_word(files, "task");
  return word ? find_task(word->text) : std::nullopt;
}

void check_backends(const Files& files, Draft& draft) {
  for (const YamlFile& file : files) {
    const auto backend = file.word("backend");
    if (!backend || backend->text == "local") continue;
    draft.problems.push_back(
        fmt::format("{}: Invalid backend: {} (this build runs on this machine only: local)",
                    backend->at, backend->text));
  }
}

void check_tasks(const Files& files, const TaskWord& command, Draft& draft) {
  for (const YamlFile& file : files) {
    const auto word = file.word("task");
    if (!word) continue;
    const auto choice = find_task(word->text);
    if (!choice) {
      draft.problems.push_back(word->at + ": " + task_problem(word->text));
    } else if (command.choice && choice->task != command.choice->task) {
      draft.problems.push_back(fmt::format(
          "{}: {} contradicts the command {}: leave the command out, or change the file", word->at,
          word->text, command.text));
    }
  }
}

void check_required_words(const Files& files, Draft& draft) {
  if (files.empty() || draft.incomplete) return;
  if (!last_word(files, "task")) {
    draft.problems.push_back(draft.missing_at +
                             "Task is required in the configuration file (for example task: "
                             "llm-sft)");
  }
  if (!last_word(files, "backend")) {
    draft.problems.push_back(draft.missing_at +
                             "Backend is required in the configuration file (backend: local)");
  }
}

// A parameter `trainer`, in a file or as a flag, wins over the task's name.
void take_trainer(const TaskChoice& choice, const Place& place, Draft& draft) {
  const Field* trainer = draft.field("trainer");
  if (trainer && !choice.trainer.empty()) draft.assign(*trainer, choice.trainer, place);
}

void apply_files(const Files& files, Draft& draft) {
  for (const YamlFile& file : files) apply_yaml(file, draft);
  const auto word = last_word(files, "task");
  const auto choice = task_in(files);
  if (choice && !draft.given("trainer")) take_trainer(*choice, word->place, draft);
}

// After the files, so that flags win.
void apply_flags(const TaskWord& word, const CommandFlags& flags, Draft& draft) {
  if (word.choice && !flags.find("trainer"))
    take_trainer(*word.choice, {{Origin::flag, word.text}, word.text}, draft);
  for (const GivenFlag& given : flags.given)
    draft.assign(*given.field, given.value, {{Origin::flag, given.flag}, given.flag});
  if (flags.backend && *flags.backend != "local") {
    draft.problems.push_back(
        fmt::format("--backend: Invalid backend: {} (this build runs on this machine only: local)",
                    *flags.backend));
  }
}

void read_environment(Draft& draft) {
  for (const Field* field : fields_of(draft.config.task)) {
    if (field->environment.empty() || draft.given(field->name)) continue;
    const std::string name(field->environment);
    const char* value = std::getenv(name.c_str());
    if (value && *value) draft.assign(*field, value, {{Origin::environment, name}, name});
  }
}

std::string sentence(const Draft& draft, const Problem& problem) {
  const std::string name(problem.field->name);
  const auto label = draft.labels.find(name);
  if (label != draft.labels.end()) return label->second + ": " + problem.verdict.text;
  if (problem.verdict.fault == Fault::missing) return draft.missing_at + problem.verdict.text;
  return name + ": " + problem.verdict.text;
}

void collect_problems(Draft& draft) {
  for (const Problem& problem : find_problems(draft.config.params, draft.config.task)) {
    // Reported already; what it holds now is only the default.
    if (draft.unreadable.contains(std::string(problem.field->name))) continue;
    if (problem.verdict.fault == Fault::missing && draft.incomplete) continue;
    auto& list = problem.verdict.fault == Fault::unsupported ? draft.unsupported : draft.problems;
    list.push_back(sentence(draft, problem));
  }
}

// What this build cannot do, with the task or trainer itself at the end.
std::vector<std::string> ordered_unsupported(const TaskWord& word, const Files& files,
                                             const Draft& draft) {
  std::vector<std::string> all, last;
  const auto trainer = draft.labels.find("trainer");
  for (const std::string& text : draft.unsupported) {
    const bool of_trainer =
        trainer != draft.labels.end() && text.starts_with(trainer->second + ": ");
    (of_trainer ? last : all).push_back(text);
  }
  if (std::string text = task_not_supported(draft.config.task); !text.empty()) {
    const auto in_file = last_word(files, "task");
    const std::string label = in_file ? in_file->at : word.text;
    last.push_back(label + ": " + text);
  }
  all.insert(all.end(), last.begin(), last.end());
  return all;
}

void finish(Draft& draft) {
  TrainingParams& params = draft.config.params;
  if (!params.apply_chat_template) params.chat_template = "none";
  params.project_name = project_folder(params);
  add_notes(draft);
}

}  // namespace

ResolvedConfig resolve(const TaskWord& word, const std::vector<std::string>& arguments,
                       CommandFlags flags, Purpose purpose) {
  std::vector<std::string> unread;
  const Files files = load_files(flags.config_files, unread);
  const Task by_word = word.choice ? word.choice->task : Task::llm;
  const auto by_file = task_in(files);
  Draft draft(word.choice || !by_file ? by_word : by_file->task);
  // Another task has other flags.
  if (draft.config.task != by_word) flags = read_command_flags(arguments, draft.config.task);
  draft.problems = flags.problems;
  draft.problems.insert(draft.problems.end(), unread.begin(), unread.end());
  draft.incomplete = !unread.empty();
  if (!files.empty()) draft.missing_at = files.back().name + ":1:1: ";
  const bool named = purpose == Purpose::plan && word.choice;
  if (!flags.train && !named && flags.config_files.empty()) {
    draft.problems.push_back(word.text.empty()
                                 ? "nothing to do: give a command (aitraining llm --train ...) or "
                                   "--config FILE"
                                 : "nothing to do: add --train");
  }
  check_required_words(files, draft);
  check_tasks(files, word, draft);
  check_backends(files, draft);
  apply_files(files, draft);
  apply_flags(word, flags, draft);
  read_environment(draft);
  collect_problems(draft);
  const auto unsupported = ordered_unsupported(word, files, draft);
  // What is wrong comes first in the list.
  if (purpose == Purpose::train)
    draft.problems.insert(draft.problems.end(), unsupported.begin(), unsupported.end());
  throw_problems(draft.problems);
  draft.config.unsupported = unsupported;
  finish(draft);
  return std::move(draft.config);
}

ResolvedConfig resolve_values(const nlohmann::ordered_json& values, const std::string& origin,
                              Task task) {
  Draft draft(task);
  apply_values(values, origin, draft);
  read_environment(draft);
  collect_problems(draft);
  const auto unsupported = ordered_unsupported({origin, {}}, {}, draft);
  draft.problems.insert(draft.problems.end(), unsupported.begin(), unsupported.end());
  throw_problems(draft.problems);
  finish(draft);
  return std::move(draft.config);
}

}  // namespace aitraining::config
