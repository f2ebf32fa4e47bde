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
  std::optional<std::string> config_file, backend;
  bool train = false, help = false, version = false;
  std::vector<std::string> problems;
};

// Arguments after the command word, through CLI11. Unknown flags, repeated flags and missing values
// become problems.
CommandFlags read_command_flags(const std::vector<std::string>& arguments);

// The same rules for a fixed set of text flags, all required (tools). UserError with every problem.
std::vector<std::string> read_text_flags(const std::vector<std::string>& arguments,
                                         const std::vector<std::string>& flags);

}  // namespace aitraining::config
