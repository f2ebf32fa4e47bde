#pragma once
#include <cstdint>

#include "aitraining/engine/engine.h"
#include "aitraining/launch/launch.h"

namespace aitraining::app {

// Bytes that one of `ranks_here` ranks may take: free memory of its GPU, or its part of this machine's (within its
// cgroup).
uint64_t free_memory(c10::Device device, int ranks_here);

// How many of the last units can stay whole under ZeRO-3 beside weights, gradients, optimizer state and buffers, leaving a
// fifth of `bytes` to activations.
int64_t units_that_fit(const ops::Chain& chain, const engine::EngineOptions& options,
                       const launch::RankEnvironment& rank, uint64_t bytes);

}  // namespace aitraining::app
