#include "supervisor.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "aitraining/core/error.h"
#include "aitraining/core/log.h"
#include "environment.h"
#include "failure.h"
#include "phase_board.h"
#include "signal_gate.h"
#include "store_socket.h"

namespace aitraining::launch {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kReportedLines = 20;

class Supervisor {
 public:
  Supervisor(const LaunchPlan& plan, const Cluster& cluster, const RankProgram& program,
             std::string project_folder, const Grace& grace)
      : plan_(plan),
        cluster_(cluster),
        program_(program),
        phases_(plan.ranks),
        logs_(std::filesystem::path(std::move(project_folder)) / "logs"),
        grace_(grace) {}

  // Whatever happens here, no rank outlives the supervisor.
  ~Supervisor() {
    send(SIGKILL);
    for (RankProcess& process : processes_) {
      if (process.running()) collect(process);
    }
  }

  int run() {
    std::filesystem::create_directories(logs_);
    start_all();
    while (any_running()) wait_once();
    return conclude();
  }

 private:
  void start_all() {
    StoreSocket store;
    if (cluster_.node_rank == 0) store = open_store_socket(cluster_);
    const int world = plan_.ranks * cluster_.nnodes;
    for (int local = 0; local < plan_.ranks; ++local) {
      const int rank = cluster_.node_rank * plan_.ranks + local;
      RankSetup setup{.environment = {.rank = rank,
                                      .local_rank = local,
                                      .world_size = world,
                                      .local_world_size = plan_.ranks,
                                      .master_addr = cluster_.master_addr,
                                      .master_port = cluster_.node_rank == 0 ? store.port
                                                                             : cluster_.master_port},
                      .threads = plan_.threads_per_rank,
                      .phase_fd = phases_.descriptor(),
                      .signal_mask = gate_.previous_mask()};
      if (rank == 0) setup.environment.store_listen_fd = store.listener.get();
      if (local > 0) setup.log_file = logs_ / fmt::format("rank{}.log", rank);
      processes_.push_back(start_rank(program_, setup));
      log::info("rank={} world={} pid={}", rank, world, processes_.back().pid);
    }
  }

  bool any_running() const { return std::ranges::any_of(processes_, &RankProcess::running); }

  void wait_once() {
    std::vector<pollfd> watched{{gate_.descriptor(), POLLIN, 0}};
    std::vector<RankProcess*> owners;
    for (RankProcess& process : processes_) {
      if (!process.running()) continue;
      watched.push_back({process.pidfd.get(), POLLIN, 0});
      owners.push_back(&process);
    }
    if (::poll(watched.data(), watched.size(), time_left()) < 0 && errno != EINTR) {
      throw EnvironmentError("cannot wait for the ranks: {}", std::strerror(errno));
    }
    if (deadline_ && Clock::now() >= *deadline_) kill_all();
    for (int number = gate_.take(); number != 0; number = gate_.take()) on_signal(number);
    for (size_t i = 0; i < owners.size(); ++i) {
      if (watched[i + 1].revents != 0) on_end(*owners[i]);
    }
  }

  int time_left() const {
    if (!deadline_) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - Clock::now());
    return static_cast<int>(std::max<int64_t>(0, left.count()));
  }

  void on_end(RankProcess& process) {
    collect(process);
    ends_.push_back({process.rank, process.status, terminated_, killed_});
    if (!process.status.success()) terminate(grace_.after_failure);
  }

  // The first signal lets the ranks save; a second one does not wait for that.
  void on_signal(int number) {
    if (interrupted_ != 0) return kill_all();
    interrupted_ = number;
    log::warn(
        "[INTERRUPTED] Training cancelled by user ({}); waiting for the ranks to end, again to end "
        "them at once",
        ::strsignal(number));
    terminated_ = false;  // another, longer time counts from now on
    terminate(grace_.after_interrupt);
  }

  void terminate(std::chrono::milliseconds grace) {
    if (terminated_) return;
    terminated_ = true;
    if (!deadline_) deadline_ = Clock::now() + grace;
    send(SIGTERM);
  }

  void kill_all() {
    killed_ = true;
    deadline_.reset();
    send(SIGKILL);
  }

  void send(int number) const {
    for (const RankProcess& process : processes_) {
      if (process.running()) ::kill(-process.pid, number);
    }
  }

  int conclude() const {
    if (interrupted_ != 0) return 128 + interrupted_;
    const auto failure = first_failure(ends_);
    if (!failure) return 0;
    const auto& process = *std::ranges::find(processes_, failure->rank, &RankProcess::rank);
    const std::string phase = phases_.phase(failure->rank - cluster_.node_rank * plan_.ranks);
    log::error("rank {} of {} failed{}: {}", failure->rank, plan_.ranks * cluster_.nnodes,
               phase.empty() ? "" : " in " + phase, describe_status(failure->status));
    const std::string lines =
        process.log_file.empty() ? "" : last_lines(process.log_file, kReportedLines);
    if (!lines.empty()) log::error("last lines of rank {}:\n{}", failure->rank, lines);
    log::error("Training failed; the ranks' output is in {}", logs_.string());
    return exit_code_of(failure->status);
  }

  const LaunchPlan& plan_;
  const Cluster& cluster_;
  const RankProgram& program_;
  PhaseBoard phases_;
  std::filesystem::path logs_;
  Grace grace_;
  SignalGate gate_;
  std::vector<RankProcess> processes_;
  std::vector<RankEnd> ends_;
  std::optional<Clock::time_point> deadline_;  // when SIGKILL follows
  bool terminated_ = false, killed_ = false;
  int interrupted_ = 0;
};

}  // namespace

int supervise_ranks(const LaunchPlan& plan, const Cluster& cluster, const RankProgram& program,
                    const std::string& project_folder, const Grace& grace) {
  return Supervisor(plan, cluster, program, project_folder, grace).run();
}

int supervise(const LaunchPlan& plan, const Cluster& cluster, const std::string& params_file,
              const std::string& project_folder) {
  if (plan.ranks * cluster.nnodes > 1) {
    return supervise_ranks(plan, cluster, {"/proc/self/exe", {"--run-rank", params_file}}, project_folder,
                           Grace{});
  }
  for (const std::string& name : rank_variables()) ::unsetenv(name.c_str());
  ::setenv("OMP_NUM_THREADS", std::to_string(plan.threads_per_rank).c_str(), 0);
  exit_on_signals();
  return run_rank_in_process(params_file);
}

}  // namespace aitraining::launch
