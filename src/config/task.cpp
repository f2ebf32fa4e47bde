#include "task.h"

#include <algorithm>

#include <fmt/format.h>

#include "aitraining/config/config.h"
#include "aitraining/core/strings.h"

namespace aitraining::config {
namespace {

struct Known {
  std::string_view word;
  Task task;
  std::string_view trainer;
};
constexpr Known kKnown[] = {{"llm", Task::llm, ""},
                            {"llm-sft", Task::llm, "sft"},
                            {"llm-generic", Task::llm, "default"},
                            {"llm-default", Task::llm, "default"},
                            {"llm-dpo", Task::llm, "dpo"},
                            {"llm-orpo", Task::llm, "orpo"},
                            {"llm-reward", Task::llm, "reward"},
                            {"seq2seq", Task::seq2seq, ""},
                            {"vlm", Task::vlm, ""},
                            {"vlm:vqa", Task::vlm, "vqa"},
                            {"vlm:captioning", Task::vlm, "captioning"}};

// ':' and '-' both stand between a task and its trainer.
std::string folded(std::string_view word) {
  std::string result(word);
  std::ranges::replace(result, ':', '-');
  return result;
}

}  // namespace

std::string_view task_name(Task task) {
  constexpr std::string_view kNames[] = {"llm", "seq2seq", "vlm"};
  return kNames[static_cast<size_t>(task)];
}

std::optional<TaskChoice> find_task(const std::string& word) {
  for (const Known& known : kKnown) {
    if (folded(known.word) == folded(word))
      return TaskChoice{known.task, std::string(known.trainer)};
  }
  return std::nullopt;
}

std::vector<std::string> task_words() {
  std::vector<std::string> words;
  for (const Known& known : kKnown) words.emplace_back(known.word);
  return words;
}

std::string task_problem(const std::string& word) {
  const bool llm = folded(word).starts_with("llm-");
  const std::string trainer = llm ? word.substr(4) : "";
  // These are no tasks of their own in the reference either.
  const bool by_parameter = trainer == "ppo" || trainer == "grpo" || trainer == "distillation";
  const auto near = nearest(word, task_words());
  return fmt::format("{}Task `{}` is not supported (available: {}){}",
                     llm ? "Invalid LLM training task: " : "", word, join(task_words(), ", "),
                     by_parameter ? fmt::format("; write task: llm and params.trainer: {}", trainer)
                     : near       ? fmt::format("; did you mean '{}'?", *near)
                                  : "");
}

std::string task_not_supported(Task task) {
  if (task == Task::llm) return {};
  return fmt::format(
      "not supported yet in this build: task {} (available: llm). Train a text model with llm-sft",
      task_name(task));
}

}  // namespace aitraining::config
