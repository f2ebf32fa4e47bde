#include "aitraining/project/training.h"

#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "aitraining/core/error.h"
#include "aitraining/core/files.h"
#include "aitraining/core/log.h"
#include "aitraining/core/strings.h"
#include "aitraining/project/front_check.h"

namespace aitraining::project {
namespace fs = std::filesystem;
namespace {

void print_project(const std::string& folder) {
  fmt::print("Project folder: {}\n", folder);
  std::fflush(stdout);  // the ranks write to the same stream
}

void report(const config::ResolvedConfig& config, const launch::LaunchPlan& plan,
            const launch::DeviceInventory& devices) {
  // In the reference's words; other trainers are refused before.
  log::info("Starting {} training...",
            config.params.trainer == "default" ? "default/generic CLM" : "SFT");
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

void make_folder(const std::string& folder) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (code || !fs::is_directory(folder)) {
    throw UserError("project_name: cannot make the folder {}: {}", folder,
                    code ? code.message() : "something else has that name");
  }
}

}  // namespace

PreparedTraining prepare(config::ResolvedConfig config) {
  PreparedTraining training{.config = std::move(config), .folder = {}, .devices = {}, .plan = {}};
  config::TrainingParams& params = training.config.params;
  training.folder = config::project_folder(params);
  check_before_launch(params);
  training.devices = launch::probe_devices();
  training.plan = launch::make_plan(params, training.devices, launch::read_launch_inputs(params));
  params.device = training.plan.device;  // the ranks take what was decided here
  return training;
}

int run(PreparedTraining training) {
  make_folder(training.folder);
  print_project(training.folder);
  report(training.config, training.plan, training.devices);
  const std::string file = training.folder + "/training_params.json";
  write_file_atomic(file, config::to_json(training.config.params).dump(4) + "\n");
  const int code = launch::supervise(training.plan, file, training.folder);
  if (code == 0) print_project(training.folder);
  return code;
}

int run_job(config::ResolvedConfig config) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  return run(prepare(std::move(config)));
}

}  // namespace aitraining::project
