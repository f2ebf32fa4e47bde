#pragma once
#include "aitraining/config/config.h"

namespace aitraining {

// Checks, plans and runs a training. Returns the exit code.
int train(config::ResolvedConfig config);

}  // namespace aitraining
