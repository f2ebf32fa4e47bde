#pragma once
// Devices -> plan -> processes. The launching parent never loads LibTorch and never touches a
// device.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "aitraining/config/config.h"

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

struct DeviceInventory {
  int cuda_devices = 0;  // visible ones
  std::vector<std::string> names;
  std::string driver;      // empty: no driver
  int cores = 1;           // usable by this process (affinity and cgroup)
  bool fast_bf16 = false;  // AVX512_BF16 or AMX
};
DeviceInventory probe_devices();

// The decision of the launcher. A pure function of its arguments, table-tested.
struct LaunchPlan {
  int ranks = 1;
  std::string device = "cpu";  // cpu, cuda
  std::string engine = "ddp";  // single, ddp, zero2, zero3
  std::string precision = "fp32", precision_reason;
  int threads_per_rank = 1;
  std::vector<std::string> notes;
};
struct LaunchInputs {
  std::optional<int>
      forced_processes;  // AUTOTRAIN_FORCE_NUM_PROCESSES or --nproc-per-node; 0 or less: CPU
  std::vector<std::string> notes{};  // about ignored or deprecated variables; taken into the plan's
};
LaunchPlan make_plan(const config::TrainingParams& params, const DeviceInventory& devices,
                     const LaunchInputs& inputs);
LaunchInputs read_launch_inputs(const config::TrainingParams& params);

// This machine among those of a run.
struct Cluster {
  int nnodes = 1, node_rank = 0;
  std::string master_addr = "127.0.0.1";
  int master_port = 0;             // 0: any free one
  std::optional<int> ranks_here;   // what accelerate's file says
  std::vector<std::string> notes;
};
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
