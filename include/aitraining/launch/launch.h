#pragma once
// Devices -> plan -> processes. The launching parent never loads LibTorch and never touches a
// device.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "aitraining/config/config.h"
#include "aitraining/launch/devices.h"

namespace aitraining::launch {

// Rank's identity, as torchrun names it.
struct RankEnvironment {
  int rank = 0, local_rank = 0, world_size = 1, local_world_size = 1;
  std::string master_addr = "127.0.0.1";
  int master_port = 0;
  int store_listen_fd = -1;  // rank 0: the listening socket that the parent opened for the store
  bool store_elsewhere = false;  // torchrun's agent serves the store
  std::string store_prefix;      // of its keys, after a restart by torchrun
};
// Read in a rank process; UserError when incomplete.
RankEnvironment read_rank_environment();

// The decision of the launcher. A pure function of its arguments, table-tested.
struct LaunchPlan {
  int ranks = 1;   // on this machine
  int nnodes = 1;  // machines; each is taken to have as many ranks
  int world_size() const { return ranks * nnodes; }
  std::string device = "cpu";  // cpu, cuda
  std::string engine = "ddp";  // single, ddp, zero2, zero3
  std::string precision = "fp32", precision_reason;
  int threads_per_rank = 1;
  // Of each rank: the cores nearest to its GPU, as the kernel lists them ("0-47,96-143"), to which it is bound; empty:
  // any.
  std::vector<std::string> cores{};
  std::vector<std::string> notes;
  // Variables that all ranks get beside their identity, unless the user has set them: what
  // accelerate and torchrun export, and limits of NCCL.
  std::map<std::string, std::string> environment;
  // What the reference counts as devices: GPUs, or ranks where their number was given; 0: its CPU
  // form.
  int counted_devices = 0;
};
struct LaunchInputs {
  std::optional<int>
      forced_processes;  // AUTOTRAIN_FORCE_NUM_PROCESSES or --nproc-per-node; 0 or less: CPU
  std::vector<std::string> notes{};  // about ignored or deprecated variables; taken into the plan's
  std::optional<int> threads{};      // OMP_NUM_THREADS, which ranks inherit
  // The caller's to set:
  config::Task task = config::Task::llm;
  int nnodes = 1;
};
LaunchPlan make_plan(const config::TrainingParams& params, const DeviceInventory& devices,
                     const LaunchInputs& inputs);
LaunchInputs read_launch_inputs(const config::TrainingParams& params);
// The command that the reference would have run for this, word by word.
std::vector<std::string> accelerate_command(const LaunchPlan& plan,
                                            const config::TrainingParams& params,
                                            config::Task task);
// Sets the plan's variables in this process, for the ranks to inherit; what is set already stays.
void export_environment(const LaunchPlan& plan);

// This machine among those of a run.
struct Cluster {
  int nnodes = 1, node_rank = 0;
  std::string master_addr = "127.0.0.1";
  int master_port = 0;             // 0: any free one
  std::optional<int> ranks_here;   // what accelerate's file says
  std::vector<std::string> notes;
};
// Into `inputs`: what the machines decide.
void apply_cluster(const Cluster& cluster, LaunchInputs& inputs);
// From the flags; where they name one machine only, from accelerate's default configuration file if that names more.
// UserError for a file that contradicts itself.
Cluster read_cluster(const config::TrainingParams& params);

// `--launcher torchrun|slurm|mpi`: which rank the launcher made of this process, from its variables. UserError naming the
// variable that is missing.
RankEnvironment read_started_rank(const config::TrainingParams& params);
// Runs this process as that rank. `params_json`: what training_params.json would hold. Returns the exit code.
int run_started_rank(const RankEnvironment& rank, const std::string& params_json, int threads);

// Exit code of a rank whose only trouble is that another one went away: the supervisor then looks
// for the other one.
inline constexpr int kExitPeerLost = 3;

// Starts the ranks (own executable, `--run-rank FILE`), waits, ends all when one fails. Returns the
// exit code. One rank: runs in this process through `run_rank`, no child.
int supervise(const LaunchPlan& plan, const Cluster& cluster, const std::string& params_file,
              const std::string& project_folder);

// Loads the training library and LibTorch into this process and runs one rank. Returns the exit
// code.
int run_rank_in_process(const std::string& params_file);
// The same library's tools; `request` is a JSON object, see app/run_rank.h.
int run_tool_in_process(const std::string& request);

}  // namespace aitraining::launch
