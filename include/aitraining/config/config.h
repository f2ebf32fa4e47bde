#pragma once
// From argv and YAML to checked TrainingParams.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "aitraining/config/training_params.h"

namespace aitraining::config {

// Where a field's value came from: default < file < environment reference < flag.
enum class Origin { default_value, file, environment, flag };

struct ResolvedConfig {
  TrainingParams params;
  std::map<std::string, Origin> origins;  // by field name
  std::string task = "llm";
  std::vector<std::string> notes;  // for the log: ignored variables, values of other trainers, ...
};

// The command line, understood. Nothing was run yet and nothing is written.
struct Command {
  enum class Kind { help, version, train, run_rank, tool } kind = Kind::help;
  std::string text;         // help and version: what to print
  ResolvedConfig config;    // train
  std::string rank_params;  // run_rank: path of training_params.json
  std::string
      tool_request;  // tool: the JSON object that the training library takes (app/run_rank.h)
};

// UserError with every problem found, each with the nearest known name, or file:line.
Command parse_command_line(const std::vector<std::string>& arguments);

// training_params.json without secrets, 4-space indent; the same names as the reference.
nlohmann::ordered_json to_json(const TrainingParams& params);
TrainingParams from_json(const nlohmann::ordered_json& json, const std::string& origin);

// Every contradiction between values (peft and quantization, batch size, names, ...), each a full
// sentence.
std::vector<std::string> validate(const TrainingParams& params);

// Absolute project folder: relative names live in the current directory or AUTOTRAIN_PROJECTS_DIR.
std::string project_folder(const TrainingParams& params);

// One line per value that was given ("lr = 2e-05 (flag)"); secrets show as ***.
std::string describe(const ResolvedConfig& config);
// "--token" and the like: what follows must not stay visible in the process list.
bool is_secret_flag(const std::string& argument);

std::string help_text();
// One line per flag, sorted: the golden list of tests/golden/cli_options.txt.
std::string flag_list();
std::string parameters_markdown();  // docs/parameters.md

}  // namespace aitraining::config
