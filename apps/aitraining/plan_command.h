#pragma once
#include "aitraining/config/config.h"

namespace aitraining {

// Prints what a training would do and need. Returns the exit code.
int plan(const config::ResolvedConfig& config, const config::PlanRequest& request);
// Prints versions, devices and limits.
int print_environment(const config::EnvironmentRequest& request);

}  // namespace aitraining
