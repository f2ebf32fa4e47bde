#pragma once
// How a group's parameters, gradients and optimizer state are kept over ranks. The engine calls these around its one
// schedule; implementations differ in what is whole where, and when.
#include <memory>
#include <vector>

#include "group_state.h"

namespace aitraining::engine {

class Policy {
 public:
  using State = Engine::GroupState;
  virtual ~Policy() = default;
  // Allocates group->compute, group->grad and state.master.
  virtual void allocate(State& state, const EngineOptions& options) = 0;
  // Begins to make group->compute whole; issued one unit ahead.
  virtual void gather(State& state) = 0;
  // group->compute may be read after this.
  virtual void wait_gathered(State& state) = 0;
  // group->compute is not read again until the next gather.
  virtual void release(State& state) = 0;
  // group->grad is whole on this rank: begin to sum it over ranks.
  virtual void reduce(State& state) = 0;
  // The owned range of every reduced gradient may be read after this.
  virtual void wait_reduced() = 0;
  // The owned, reduced gradient, beside state.master.
  virtual at::Tensor owned_gradient(const State& state) const = 0;
  // Sum of squares over all ranks' distinct ranges, the same number on every rank.
  virtual double global_sum(double owned_sum_of_squares) = 0;
  // Masters have changed: bring group->compute up to date.
  virtual void publish(State& state) = 0;
  // Whether this rank is the one that writes its owned range.
  virtual bool writes() const = 0;
};

// Every rank keeps everything; gradients are summed unit by unit while backward goes on (DDP, or one rank).
std::unique_ptr<Policy> make_replicated_policy(comm::ProcessGroup& group);

}  // namespace aitraining::engine
