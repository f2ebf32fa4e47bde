#include "aitraining/project/training.h"

#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

#include <fmt/format.h>

#include "aitraining/core/error.h"
#include "aitraining/core/files.h"
#include "aitraining/core/folder_lock.h"
#include "aitraining/core/log.h"
#include "aitraining/core/strings.h"
#include "aitraining/launch/environment_report.h"
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

// A folder with files that a run would replace, and that no run of ours has made, is somebody else's.
void refuse_foreign_folder(const std::string& folder) {
  if (fs::exists(fs::path(folder) / "training_params.json") || !fs::is_directory(folder)) return;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    const bool replaced = name == "README.md" || name == "trainer_state.json" ||
                          name.ends_with(".safetensors") || name.ends_with("config.json") ||
                          name.starts_with("tokenizer");
    if (!replaced || !entry.is_regular_file()) continue;
    throw UserError("project_name: {} holds {}, which this run would replace, and is no project folder of an earlier run "
                    "(it has no training_params.json): choose another name",
                    folder, name);
  }
}

// What an interrupted run was writing: never a whole checkpoint or model, and nobody writes now.
void remove_unfinished(const std::string& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name != ".tmp-model" && !name.starts_with(".tmp-checkpoint-")) continue;
    log::info("removing {}, which an interrupted run left unfinished", entry.path().string());
    fs::remove_all(entry.path());
  }
}

// The first machine's or rank's part, in whatever way ranks are started. The lock is kept as long as the run goes on.
std::unique_ptr<FolderLock> open_project(const std::string& folder, const launch::DeviceInventory& devices) {
  refuse_foreign_folder(folder);
  make_folder(folder);
  auto lock = std::make_unique<FolderLock>(folder, "training run");
  remove_unfinished(folder);
  print_project(folder);
  log_environment(devices, folder);
  return lock;
}

// One rank among those that something else started: it prints and writes only when it is the first.
int train_started_rank(const PreparedTraining& training) {
  const auto& [config, folder, devices, cluster, plan] = training;
  const launch::RankEnvironment rank = launch::read_started_rank(config.params);
  const std::string json = config::to_json(config.params).dump(4) + "\n";
  std::unique_ptr<FolderLock> lock;
  if (rank.rank == 0) {
    lock = open_project(folder, devices);
    report(config, plan, devices);
    write_file_atomic(folder + "/training_params.json", json);
  }
  const int code = launch::run_started_rank(rank, json, plan.threads_per_rank);
  if (code == 0 && rank.rank == 0) print_project(folder);
  return code;
}

}  // namespace

PreparedTraining prepare(config::ResolvedConfig config) {
  PreparedTraining training;
  training.config = std::move(config);
  config::TrainingParams& params = training.config.params;
  training.folder = config::project_folder(params);
  check_before_launch(params);
  training.devices = launch::probe_devices();
  training.cluster = launch::read_cluster(params);
  launch::LaunchInputs inputs = launch::read_launch_inputs(params);
  inputs.task = training.config.task;
  launch::apply_cluster(training.cluster, inputs);
  training.plan = launch::make_plan(params, training.devices, inputs);
  params.device = training.plan.device;  // the ranks take what was decided here
  return training;
}

int run(PreparedTraining training) {
  const auto& [config, folder, devices, cluster, plan] = training;
  launch::export_environment(plan);
  if (config.params.launcher) return train_started_rank(training);
  const bool first = cluster.node_rank == 0;
  std::unique_ptr<FolderLock> lock;  // machine 0 keeps it for all of them
  if (first) {
    lock = open_project(folder, devices);
  } else {
    make_folder(folder);
  }
  report(config, plan, devices);
  const std::string file =
      folder + (first ? "/training_params.json"
                      : fmt::format("/logs/machine{}.json", cluster.node_rank));
  fs::create_directories(fs::path(file).parent_path());
  write_file_atomic(file, config::to_json(config.params).dump(4) + "\n");
  const int code = launch::supervise(plan, cluster, file, folder);
  if (code == 0 && first) print_project(folder);
  return code;
}

int run_job(config::ResolvedConfig config) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  return run(prepare(std::move(config)));
}

}  // namespace aitraining::project
