#include "aitraining/ops/kernels.h"
#include "gradient_shards.h"
#include "policy.h"

namespace aitraining::engine {

class ReplicatedPolicy : public Policy {
 public:
  ReplicatedPolicy(const PolicyContext& context, Reduction reduction)
      : context_(context), shards_(context), reduction_(reduction) {}

  void allocate(State& state) override {
    ops::ParamGroup& g = *state.group;
    const auto& options = context_.options;
    const int64_t padded = owned_elements(g.numel(), ranks()) * ranks();
    // Zeros: alignment gaps are read by the optimizer and by checksums.
    g.compute = at::zeros({padded}, at::TensorOptions().device(options.device).dtype(options.compute));
    if (!g.trainable()) return;
    const bool same = options.compute == at::kFloat && !options.offload_optimizer;
    state.master = same ? g.compute
                        : at::zeros({padded}, at::TensorOptions().dtype(at::kFloat).device(
                                                  options.offload_optimizer ? at::kCPU : options.device));
    g.grad = at::zeros({padded}, at::TensorOptions().device(options.device).dtype(at::kFloat));
    if (in_order()) shards_.allocate(state);
  }

  void gather(State&) override {}
  void wait_gathered(State&) override {}
  void release(State&) override {}

  void begin_update(State& state) override {
    state.group->begin_update();
    state.grad_shard_begun = false;
  }

  void begin_gradient(State&) override {}

  void reduce(State& state, bool last) override {
    if (reduction_ == Reduction::per_micro_in_order) {
      reduce_shard(state);
      // The whole buffer is free for the next micro-batch only once its pieces were sent.
      shards_.wait();
      state.group->begin_update();
    } else if (last && in_order()) {
      reduce_shard(state);
    } else if (last) {
      state.group->finish_update();
      if (ranks() > 1) pending_.push_back(context_.group.all_reduce_sum_async(state.group->grad));
    }
    if (last && in_order()) reduced_.push_back(&state);
  }

  void wait_reduced() override {
    shards_.wait();
    for (State* state : reduced_) {
      pending_.push_back(context_.group.all_gather_into_async(state->group->grad, state->grad_shard));
    }
    reduced_.clear();
    for (auto& work : pending_) work->wait();
    pending_.clear();
  }

  at::Tensor owned_gradient(const State& state) const override { return state.group->grad; }

  void add_squares(const State& state, SquareSums& sums) const override {
    if (reduction_ != Reduction::per_micro_in_order) {
      sums.whole += ops::kernels::sum_of_squares(state.group->grad);
      return;
    }
    const int64_t n = state.grad_shard.numel();
    for (int r = 0; r < ranks(); ++r) {
      sums.by_rank[static_cast<size_t>(r)] += ops::kernels::sum_of_squares(state.group->grad.narrow(0, r * n, n));
    }
  }

  void publish(State& state) override {
    if (state.master.defined() && !state.master.is_same(state.group->compute)) state.group->compute.copy_(state.master);
  }

  bool sharded() const override { return false; }
  at::Tensor replica(const State& state) const override { return state.master; }

 private:
  int ranks() const { return context_.group.size(); }
  bool in_order() const { return reduction_ != Reduction::per_update; }
  void reduce_shard(State& state) {
    state.group->finish_update();
    shards_.start(state, state.group->grad, false);
  }

  PolicyContext context_;
  GradientShards shards_;
  Reduction reduction_;
  std::vector<std::unique_ptr<comm::Work>> pending_;
  std::vector<State*> reduced_;
};

std::unique_ptr<Policy> make_replicated_policy(const PolicyContext& context, Reduction reduction) {
  return std::make_unique<ReplicatedPolicy>(context, reduction);
}

}  // namespace aitraining::engine
