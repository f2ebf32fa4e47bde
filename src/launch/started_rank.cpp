// Ranks that torchrun, Slurm or MPI started: this process is one of them.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "aitraining/core/error.h"
#include "aitraining/launch/launch.h"
#include "environment.h"
#include "signal_gate.h"

namespace aitraining::launch {
namespace {

// The first of these variables that is set.
int number_from(const std::string& launcher, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const auto text = variable(name)) return whole_number(name, *text);
  }
  throw UserError("--launcher {}: {} is not set. Is this process started by {}? Without --launcher this command starts "
                  "its own ranks.", launcher, *names.begin(), launcher);
}

// "node[03-05,9],other" -> "node03": the first machine of a Slurm list.
std::string first_of_nodelist(const std::string& list) {
  const size_t bracket = list.find('['), comma = list.find(',');
  if (bracket == std::string::npos || comma < bracket) return list.substr(0, comma);
  const size_t end = list.find_first_of(",-]", bracket + 1);
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1);
}

// "2(x3),1": tasks of each machine; "2" for all of them.
int tasks_of_this_node(const std::string& text, int node) {
  int at = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const size_t times = part.find("(x");
    const int count = whole_number("SLURM_STEP_TASKS_PER_NODE", part.substr(0, times));
    const int repeat = times == std::string::npos
                           ? 1
                           : whole_number("SLURM_STEP_TASKS_PER_NODE", part.substr(times + 2, part.size() - times - 3));
    at += repeat;
    if (node < at) return count;
    begin = end + 1;
  }
  throw UserError("SLURM_STEP_TASKS_PER_NODE={} says nothing of machine {}", text, node);
}

RankEnvironment torchrun_rank() {
  RankEnvironment rank;
  rank.rank = number_from("torchrun", {"RANK"});
  rank.local_rank = number_from("torchrun", {"LOCAL_RANK"});
  rank.world_size = number_from("torchrun", {"WORLD_SIZE"});
  rank.local_world_size = number_from("torchrun", {"LOCAL_WORLD_SIZE"});
  rank.store_elsewhere = variable("TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (rank.store_elsewhere) {
    rank.store_prefix = "/aitraining/attempt_" + variable("TORCHELASTIC_RESTART_COUNT").value_or("0");
  }
  return rank;
}

RankEnvironment slurm_rank() {
  RankEnvironment rank;
  rank.rank = number_from("slurm", {"SLURM_PROCID"});
  rank.local_rank = number_from("slurm", {"SLURM_LOCALID"});
  rank.world_size = number_from("slurm", {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"});
  const auto tasks = variable("SLURM_STEP_TASKS_PER_NODE");
  rank.local_world_size = tasks ? tasks_of_this_node(*tasks, variable("SLURM_NODEID") ? number_from("slurm", {"SLURM_NODEID"}) : 0)
                                : number_from("slurm", {"SLURM_NTASKS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE"});
  if (const auto nodes = variable("SLURM_STEP_NODELIST")) rank.master_addr = first_of_nodelist(*nodes);
  // The same for all ranks of a step, and different for steps that run at once.
  if (const auto job = variable("SLURM_JOB_ID")) {
    const int step = variable("SLURM_STEP_ID") ? number_from("slurm", {"SLURM_STEP_ID"}) : 0;
    rank.master_port = 20000 + (whole_number("SLURM_JOB_ID", *job) + step) % 20000;
  }
  return rank;
}

RankEnvironment mpi_rank() {
  RankEnvironment rank;
  rank.rank = number_from("mpi", {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"});
  rank.local_rank = number_from("mpi", {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"});
  rank.world_size = number_from("mpi", {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"});
  rank.local_world_size = number_from("mpi", {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"});
  return rank;
}

}  // namespace

RankEnvironment read_started_rank(const config::TrainingParams& params) {
  const std::string& launcher = *params.launcher;
  RankEnvironment rank = launcher == "torchrun" ? torchrun_rank() : launcher == "slurm" ? slurm_rank() : mpi_rank();
  if (const auto address = variable("MASTER_ADDR")) rank.master_addr = *address;
  if (const auto port = variable("MASTER_PORT")) rank.master_port = whole_number("MASTER_PORT", *port);
  if (params.master_addr) rank.master_addr = *params.master_addr;
  if (params.master_port) rank.master_port = static_cast<int>(*params.master_port);
  if (rank.master_port == 0) rank.master_port = kUsualPort;
  if (rank.world_size > rank.local_world_size && rank.master_addr == "127.0.0.1") {
    throw UserError("--launcher {}: {} ranks on several machines, but nothing says where rank 0 is: give --master-addr, or "
                    "set MASTER_ADDR", launcher, rank.world_size);
  }
  return rank;
}

int run_started_rank(const RankEnvironment& rank, const std::string& params_json, int threads) {
  for (const auto& [name, value] : rank_identity(rank)) ::setenv(name.c_str(), value.c_str(), 1);
  ::setenv("OMP_NUM_THREADS", std::to_string(threads).c_str(), 0);
  // Parameters go to the rank as a file; this one has no place on a disk that others could read or overwrite.
  const int fd = ::memfd_create("training_params", MFD_CLOEXEC);
  if (fd < 0 || ::write(fd, params_json.data(), params_json.size()) != static_cast<ssize_t>(params_json.size())) {
    throw EnvironmentError("cannot hold the parameters in memory: {}", std::strerror(errno));
  }
  exit_on_signals();
  return run_rank_in_process(fmt::format("/proc/self/fd/{}", fd));
}

}  // namespace aitraining::launch
