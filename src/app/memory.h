#pragma once
#include <cstdint>
#include <string>

#include <c10/core/Device.h>

#include "aitraining/config/config.h"
#include "aitraining/launch/launch.h"

namespace aitraining::app {

// Bytes that one of `ranks_here` ranks may still take: free memory of its GPU, or its part of this machine's, within the
// limits of its cgroup and process.
uint64_t free_memory(c10::Device device, int ranks_here);

// The user's message for an allocation that failed; `text` is the allocator's own.
std::string out_of_memory_message(const std::string& text, int rank, const config::TrainingParams& params);

}  // namespace aitraining::app
