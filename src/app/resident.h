#pragma once
#include <cstdint>

#include "aitraining/engine/engine.h"
#include "aitraining/launch/launch.h"

namespace aitraining::app {

// How many of the last units can stay whole under ZeRO-3 beside weights, gradients, optimizer state and buffers, leaving a
// fifth of `bytes` to activations.
int64_t units_that_fit(const ops::Chain& chain, const engine::EngineOptions& options,
                       const launch::RankEnvironment& rank, uint64_t bytes);

}  // namespace aitraining::app
