#pragma once
// Files, flags and environment together. Weakest first: default, variables such as HF_TOKEN, files
// left to right, flags.
#include <optional>
#include <string>
#include <vector>

#include "aitraining/config/config.h"
#include "command_flags.h"
#include "task.h"

namespace aitraining::config {

// The command word, "llm-sft"; empty with --config alone.
struct TaskWord {
  std::string text;
  std::optional<TaskChoice> choice;
};

// plan: nothing will run, so --train is not needed, and what this build cannot do is only listed.
enum class Purpose { train, plan };

// `flags` were read from `arguments` as those of the word's task. UserError with every problem.
ResolvedConfig resolve(const TaskWord& word, const std::vector<std::string>& arguments,
                       CommandFlags flags, Purpose purpose = Purpose::train);

}  // namespace aitraining::config
