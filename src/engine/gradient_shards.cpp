#include "gradient_shards.h"

namespace aitraining::engine {

void GradientShards::allocate(State& state) const {
  const int64_t owned = owned_elements(state.group->numel(), context_.group.size());
  state.grad_shard = at::zeros({owned}, at::TensorOptions().dtype(at::kFloat).device(context_.options.device));
}

void GradientShards::start(State& state, at::Tensor gradient, bool pooled) {
  const bool ordered = context_.options.deterministic;
  Pending pending;
  const int64_t space = context_.group.reduce_scatter_space(gradient.numel(), ordered);
  if (space > 0) pending.space = context_.pool.acquire(space, gradient.scalar_type());
  pending.work = context_.group.reduce_scatter_sum_async(
      {state.grad_shard, gradient, pending.space, state.grad_shard_begun, ordered});
  state.grad_shard_begun = true;
  if (pooled) pending.gradient = std::move(gradient);
  pending_.push_back(std::move(pending));
  // One reduction overlaps the next unit's backward pass; more would only hold buffers.
  while (pending_.size() > 1) finish_oldest();
}

void GradientShards::finish_oldest() {
  Pending pending = std::move(pending_.front());
  pending_.pop_front();
  pending.work->wait();
  pending.work.reset();
  if (pending.gradient.defined()) context_.pool.give_back(std::move(pending.gradient));
  if (pending.space.defined()) context_.pool.give_back(std::move(pending.space));
}

void GradientShards::wait() {
  while (!pending_.empty()) finish_oldest();
}

}  // namespace aitraining::engine
