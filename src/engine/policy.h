#pragma once
// How a group's parameters, gradients and optimizer state are kept over ranks. The engine calls these around its one
// schedule; implementations differ in what is whole where, and when. All ranks make the same calls in the same order.
#include <memory>
#include <vector>

#include "buffer_pool.h"
#include "group_state.h"

namespace aitraining::engine {

// Sums of squares of gradients, so that all ranks come to the same norm, bit for bit.
struct SquareSums {
  double whole = 0;               // of what every rank holds
  std::vector<double> by_rank;    // [ranks] of each rank's range, where this rank knows all of them
  std::vector<double> exchanged;  // [ranks] only this rank's entry is filled: to be summed over ranks
};

class Policy {
 public:
  using State = Engine::GroupState;
  virtual ~Policy() = default;
  // Allocates what lives as long as the engine.
  virtual void allocate(State& state) = 0;

  // Begins to make group->compute whole; issued one unit ahead. Every gather is answered by one release.
  virtual void gather(State& state) = 0;
  virtual void wait_gathered(State& state) = 0;  // group->compute may be read after this
  virtual void release(State& state) = 0;

  virtual void begin_update(State& state) = 0;
  virtual void begin_gradient(State& state) = 0;  // before a unit writes into group->grad
  // A micro-batch has left the group. `last`: of this update.
  virtual void reduce(State& state, bool last) = 0;
  virtual void wait_reduced() = 0;  // the owned range of every gradient may be read after this
  virtual at::Tensor owned_gradient(const State& state) const = 0;
  virtual void add_squares(const State& state, SquareSums& sums) const = 0;
  // Masters have changed: what computes follows them.
  virtual void publish(State& state) = 0;

  virtual bool sharded() const = 0;  // ranks own different ranges
  bool writes(int rank) const { return sharded() || rank == 0; }  // whether this rank saves its owned range
  // What must be equal on all ranks; undefined when nothing is whole.
  virtual at::Tensor replica(const State& state) const = 0;
};

struct PolicyContext {
  comm::ProcessGroup& group;
  const EngineOptions& options;
  BufferPool& pool;  // for what is whole for a moment
};

enum class Reduction {
  per_update,            // micro-batches accumulate locally, one all-reduce
  per_update_in_order,   // the same, summed in rank order
  per_micro_in_order,    // summed in rank order for each micro-batch, as a sharded engine does
};
// Every rank keeps everything; gradients are summed unit by unit while backward goes on (DDP, adapters, or one rank).
std::unique_ptr<Policy> make_replicated_policy(const PolicyContext& context, Reduction reduction);
// ZeRO-2: every rank keeps the parameters, and 1/n of gradients and optimizer state.
std::unique_ptr<Policy> make_sharded_gradients_policy(const PolicyContext& context);
// ZeRO-3: every rank keeps 1/n of everything.
std::unique_ptr<Policy> make_fully_sharded_policy(const PolicyContext& context);

// Elements that each rank owns of `numel`: whole vectors of every kernel, so that no element is computed in a scalar
// tail by one engine and in a vector by another.
int64_t owned_elements(int64_t numel, int ranks);

}  // namespace aitraining::engine
