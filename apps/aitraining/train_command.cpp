#include "train_command.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "aitraining/core/error.h"
#include "aitraining/core/files.h"
#include "aitraining/core/log.h"
#include "aitraining/core/strings.h"
#include "aitraining/launch/environment_report.h"
#include "aitraining/launch/launch.h"
#include "front_check.h"

namespace aitraining {
namespace fs = std::filesystem;
namespace {

void print_project(const std::string& folder) {
  fmt::print("Project folder: {}\n", folder);
  std::fflush(stdout);  // the ranks write to the same stream
}

void report(const config::ResolvedConfig& config, const launch::LaunchPlan& plan,
            const launch::DeviceInventory& devices) {
  std::string settings(trim(config::describe(config)));
  for (size_t at = 0; (at = settings.find('\n', at)) != std::string::npos;)
    settings.replace(at, 1, ", ");
  log::info("settings: {}", settings);
  for (const std::string& note : config.notes) log::info("note: {}", note);
  for (const std::string& note : plan.notes) log::warn("{}", note);
  log::info("launch: {} rank(s) on {}{}, engine {}, precision {} ({}), {} thread(s) per rank",
            plan.ranks, plan.device,
            plan.device == "cuda" ? fmt::format(" ({})", join(devices.names, ", ")) : "",
            plan.engine, plan.precision, plan.precision_reason, plan.threads_per_rank);
}

// Into the log alone: it is for whoever reads it after a failure.
void log_environment(const launch::DeviceInventory& devices, const std::string& folder) {
  std::ofstream file(folder + "/autotrain.log", std::ios::app);
  file << "environment, as `aitraining env` and `accelerate env` show it:\n"
       << launch::environment_text(launch::describe_environment(AITRAINING_VERSION, devices));
}

void make_folder(const std::string& folder) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (code || !fs::is_directory(folder)) {
    throw UserError("project_name: cannot make the folder {}: {}", folder,
                    code ? code.message() : "something else has that name");
  }
}

}  // namespace

int train(config::ResolvedConfig config) {
  config::TrainingParams& params = config.params;
  const std::string folder = config::project_folder(params);
  check_before_launch(params);
  const launch::DeviceInventory devices = launch::probe_devices();
  launch::LaunchInputs inputs = launch::read_launch_inputs(params);
  inputs.task = config.task;
  const launch::LaunchPlan plan = launch::make_plan(params, devices, inputs);
  params.device = plan.device;  // the ranks take what was decided here
  make_folder(folder);
  print_project(folder);
  log_environment(devices, folder);
  report(config, plan, devices);
  const std::string file = folder + "/training_params.json";
  write_file_atomic(file, config::to_json(params).dump(4) + "\n");
  launch::export_environment(plan);
  const int code = launch::supervise(plan, file, folder);
  if (code == 0) print_project(folder);
  return code;
}

}  // namespace aitraining
