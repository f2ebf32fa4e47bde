#pragma once
// One training as its launching parent sees it: checks, plan, files, ranks. No LibTorch in it.
#include "aitraining/config/config.h"
#include "aitraining/launch/launch.h"

namespace aitraining::project {

// A training that passed every check that needs no rank. Nothing is written yet.
struct PreparedTraining {
  config::ResolvedConfig config;
  std::string folder;  // the project's, absolute
  launch::DeviceInventory devices;
  launch::Cluster cluster;
  launch::LaunchPlan plan;
};
// Checks files and columns, finds the devices and decides. UserError.
PreparedTraining prepare(config::ResolvedConfig config);

// Writes training_params.json into the project folder, starts the ranks as copies of this
// executable, and waits for them. Returns the exit code.
int run(PreparedTraining training);

// The same for a process that another program started for it (AutoTrainProject): it ends with that
// program, with whatever signal that one ends.
int run_job(config::ResolvedConfig config);

}  // namespace aitraining::project
