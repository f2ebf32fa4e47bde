#pragma once
// The training as a process of its own, so that neither LibTorch nor signal handling comes into the
// program that asks for it.
#include <sys/types.h>

#include <filesystem>

#include "aitraining/config/config.h"

namespace aitraining::project {

struct JobEnd {
  pid_t pid = 0;
  int code = 0;  // 128+n when signal n ended it
};

// Runs `executable --run-job` with these parameters and waits. Secrets go by the environment, the
// rest through a file without a name: nothing of either is in the process list or on the disk.
JobEnd run_job_process(const std::filesystem::path& executable,
                       const config::TrainingParams& params);

}  // namespace aitraining::project
