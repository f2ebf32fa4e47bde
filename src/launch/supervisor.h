#pragma once
#include <chrono>
#include <string>

#include "rank_process.h"

namespace aitraining::launch {

struct Grace {
  std::chrono::milliseconds after_failure{5000};    // from SIGTERM to SIGKILL
  std::chrono::milliseconds after_interrupt{8000};  // the same, when the user ends the run
};

// Runs plan.ranks copies of `program`, this machine's ranks, until all have ended. Returns the run's exit code.
int supervise_ranks(const LaunchPlan& plan, const Cluster& cluster, const RankProgram& program,
                    const std::string& project_folder, const Grace& grace);

}  // namespace aitraining::launch
