#pragma once
#include "aitraining/engine/engine.h"

namespace aitraining::engine {

// What one rank keeps for a group besides the buffers that operations see. `master` is the owned range of the flat
// buffer: all of it when replicated.
struct Engine::GroupState {
  ops::ParamGroup* group = nullptr;
  at::Tensor master;                // fp32; the same storage as group->compute when the compute type is fp32
  at::Tensor exp_avg, exp_avg_sq;   // allocated at the first update
  int64_t first_element = 0;        // of the flat buffer, where the owned range begins
};

}  // namespace aitraining::engine
