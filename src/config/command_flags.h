#pragma once
// The command line, read but not yet applied.
#include <optional>
#include <string>
#include <vector>

#include "field_table.h"

namespace aitraining::config {

struct GivenFlag {
  const Field* field;
  std::string flag;   // as it should be named in messages: "--batch-size"
  std::string value;  // booleans: "true" or "false"
};

struct CommandFlags {
  std::vector<GivenFlag> given;
  std::vector<std::string> config_files;  // applied left to right
  std::optional<std::string> backend, help_trainer;
  bool train = false, help = false, version = false;
  std::vector<std::string> problems;

  const GivenFlag* find(std::string_view name) const;  // null: not given
};

// Arguments after the command word, through CLI11. Unknown flags, repeated flags and missing values
// become problems.
CommandFlags read_command_flags(const std::vector<std::string>& arguments, Task task);

// The flags of a command that are no parameters, with the form of their value: "--config FILE".
const std::vector<std::string>& command_flag_forms();

// The same rules for a fixed set of text flags, all required (tools) or none (empty where absent).
// UserError with every problem.
std::vector<std::string> read_text_flags(const std::vector<std::string>& arguments,
                                         const std::vector<std::string>& flags,
                                         bool required = true);

}  // namespace aitraining::config
