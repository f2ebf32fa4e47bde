#pragma once
#include "aitraining/engine/engine.h"
#include "group_state.h"

namespace aitraining::engine {

// One fused update of a group's owned range. `clip`: gradients are multiplied by it (1: unchanged). `update`: its number,
// from 1, for bias correction. AdamW: Loshchilov and Hutter, 2019, arXiv 1711.05101.
void optimizer_step(Engine::GroupState& state, const at::Tensor& gradient, const OptimizerOptions& options,
                    double learning_rate, double clip, int64_t update);

}  // namespace aitraining::engine
