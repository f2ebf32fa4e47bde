#pragma once
// From argv and YAML to checked TrainingParams.
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "aitraining/config/training_params.h"

namespace aitraining::config {

// Where a field's value came from. environment: a variable of its own, or one that a file refers
// to.
enum class Origin { default_value, file, environment, flag };

struct Source {
  Origin origin = Origin::default_value;
  std::string place{};  // file: "run.yaml:12"; environment: "HF_TOKEN", with the file that refers
                        // to it: "HF_TOKEN (run.yaml:12)"; flag: "--lr"
  bool operator==(Origin other) const { return origin == other; }
  // "default", "flag", "run.yaml:12", "environment HF_TOKEN"
  std::string text() const;
};

struct ResolvedConfig {
  TrainingParams params;
  std::map<std::string, Source> origins;  // by field name; what stands here not is a default
  Task task = Task::llm;
  std::vector<std::string> notes;  // for the log: ignored variables, values of other trainers, ...
  // What this build cannot do, where only a plan was asked for: training refuses it.
  std::vector<std::string> unsupported;

  Source origin(const std::string& field) const;
};

// What `aitraining plan` was asked beside the training's own flags.
struct PlanRequest {
  bool json = false, explain = false;
  std::optional<std::string> assumed_devices;  // "8", "8x80GiB"
};

// What `aitraining env` was asked.
struct EnvironmentRequest {
  bool json = false;
  std::string config_file;  // of accelerate; empty: its default one
};

// The command line, understood. Nothing was run yet and nothing is written.
struct Command {
  enum class Kind {
    help,
    version,
    print,
    train,
    job,
    run_rank,
    tool,
    plan,
    environment
  } kind = Kind::help;
  std::string text;       // help, version, print (schema, completion): what to print
  ResolvedConfig config;  // train, job, plan
  PlanRequest plan;
  EnvironmentRequest environment;
  std::string rank_params;  // run_rank: path of training_params.json
  std::string
      tool_request;  // tool: the JSON object that the training library takes (app/run_rank.h)
};

// UserError with every problem found, each with the nearest known name, or file:line.
Command parse_command_line(const std::vector<std::string>& arguments);

// The same from a program's values by name (`--run-job`, AutoTrainProject); `origin` names their
// place in messages. Texts are read as in YAML; null is "unset".
ResolvedConfig resolve_values(const nlohmann::ordered_json& values, const std::string& origin,
                              Task task = Task::llm);
// What differs from the defaults: the values that resolve_values takes.
enum class Secrets { kept, left_out };
nlohmann::ordered_json changed_values(const TrainingParams& params, Secrets secrets,
                                      Task task = Task::llm);

TrainingParams default_params(Task task = Task::llm);

// training_params.json without secrets, 4-space indent; the same names as the reference.
nlohmann::ordered_json to_json(const TrainingParams& params, Task task = Task::llm);
TrainingParams from_json(const nlohmann::ordered_json& json, const std::string& origin,
                         Task task = Task::llm);

// Every contradiction between values (peft and quantization, batch size, names, ...), each a full
// sentence.
std::vector<std::string> validate(const TrainingParams& params, Task task = Task::llm);

// Absolute project folder: relative names live in the current directory or AUTOTRAIN_PROJECTS_DIR.
std::string project_folder(const TrainingParams& params);

// Secrets that are set, by the environment variable that hands them on.
StringMap secret_environment(const TrainingParams& params, Task task = Task::llm);

// One line per value that was given ("lr = 2e-05 (flag)"); secrets show as ***.
std::string describe(const ResolvedConfig& config);
// Every parameter of the task with its value, as text, and where it came from; secrets show as ***.
struct ExplainedValue {
  std::string name, value, origin;
};
std::vector<ExplainedValue> explain(const ResolvedConfig& config);
// "--token" and the like: what follows must not stay visible in the process list.
bool is_secret_flag(const std::string& argument);

std::string_view task_name(Task task);  // llm, seq2seq, vlm
// All flags, or with a trainer only those that it reads.
std::string help_text(Task task = Task::llm, const std::string& trainer = "");
// One line per flag, sorted: the golden list of tests/golden/cli_options.txt.
std::string flag_list(Task task = Task::llm);
std::string parameters_markdown();  // docs/parameters.md
// JSON schema (draft 2020-12) of the configuration file.
nlohmann::ordered_json json_schema(Task task = Task::llm);
// A script for bash, zsh or fish. UserError for another shell.
std::string completion_script(const std::string& shell);

}  // namespace aitraining::config
