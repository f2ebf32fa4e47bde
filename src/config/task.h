#pragma once
// Names of tasks, as commands and in the configuration file.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "aitraining/config/training_params.h"

namespace aitraining::config {

struct TaskChoice {
  Task task;
  std::string trainer;  // empty: the parameters decide
};

// "llm-sft", "llm:sft" -> llm with trainer sft; "vlm:vqa"; nullopt: no such task.
std::optional<TaskChoice> find_task(const std::string& word);
std::vector<std::string> task_words();  // all of them, in one spelling
std::string task_problem(const std::string& word);

// Empty, or that this build cannot train the task.
std::string task_not_supported(Task task);

}  // namespace aitraining::config
