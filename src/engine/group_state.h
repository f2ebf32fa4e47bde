#pragma once
#include "aitraining/comm/process_group.h"
#include "aitraining/engine/engine.h"

namespace aitraining::engine {

// What one rank keeps for a group besides the buffers that operations see. The owned range of the flat buffer is all of
// it, or this rank's 1/n.
struct Engine::GroupState {
  ops::ParamGroup* group = nullptr;
  Policy* policy = nullptr;
  int64_t first_element = 0;         // of the flat buffer, where the owned range begins
  at::Tensor master;                 // [owned] fp32; undefined when frozen
  at::Tensor exp_avg, exp_avg_sq;    // [owned] fp32, allocated at the first update
  at::Tensor shard;                  // ZeRO-3: [owned] in the compute type, what is gathered; may be master itself
  at::Tensor grad_shard;             // [owned] fp32, where reduced gradients are sharded
  bool grad_shard_begun = false;     // grad_shard holds a sum of this update
  // ZeRO-3: gathers that no release has answered yet; whether compute holds the newest weights.
  int users = 0;
  bool resident = false, fresh = false;
  std::unique_ptr<comm::Work> gathering;

  // The owned range as it is loaded and saved.
  const at::Tensor& owned() const { return master.defined() ? master : shard.defined() ? shard : group->compute; }
};

}  // namespace aitraining::engine
