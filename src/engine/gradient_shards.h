#pragma once
// Gradients of which every rank keeps 1/n: summed over ranks micro-batch by micro-batch, as soon as a unit's backward
// pass is done, into state.grad_shard.
#include <deque>

#include "policy.h"

namespace aitraining::engine {

class GradientShards {
 public:
  using State = Engine::GroupState;
  explicit GradientShards(const PolicyContext& context) : context_(context) {}

  void allocate(State& state) const;
  // Starts the sum of `gradient`, whole on this rank. `pooled`: the buffer goes back to the pool after it.
  void start(State& state, at::Tensor gradient, bool pooled);
  void wait();

 private:
  struct Pending {
    std::unique_ptr<comm::Work> work;
    at::Tensor gradient, space;  // gradient: undefined when it is not the pool's
  };
  void finish_oldest();
  PolicyContext context_;
  std::deque<Pending> pending_;
};

}  // namespace aitraining::engine
