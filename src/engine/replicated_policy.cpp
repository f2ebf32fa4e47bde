#include "policy.h"

namespace aitraining::engine {

class ReplicatedPolicy : public Policy {
 public:
  explicit ReplicatedPolicy(comm::ProcessGroup& group) : group_(group) {}

  void allocate(State& state, const EngineOptions& options) override {
    ops::ParamGroup& g = *state.group;
    const auto on_device = at::TensorOptions().device(options.device);
    // Zeros: alignment gaps are read by the optimizer and by checksums.
    g.compute = at::zeros({g.numel()}, on_device.dtype(options.compute));
    if (!g.trainable()) return;
    state.master = options.compute == at::kFloat ? g.compute : at::zeros({g.numel()}, on_device.dtype(at::kFloat));
    g.grad = at::zeros({g.numel()}, on_device.dtype(at::kFloat));
  }

  void gather(State&) override {}
  void wait_gathered(State&) override {}
  void release(State&) override {}

  void reduce(State& state) override {
    if (group_.size() > 1) pending_.push_back(group_.all_reduce_sum_async(state.group->grad));
  }

  void wait_reduced() override {
    for (auto& work : pending_) work->wait();
    pending_.clear();
  }

  at::Tensor owned_gradient(const State& state) const override { return state.group->grad; }
  double global_sum(double owned_sum_of_squares) override { return owned_sum_of_squares; }

  void publish(State& state) override {
    if (!state.master.is_same(state.group->compute)) state.group->compute.copy_(state.master);
  }

  bool writes() const override { return group_.rank() == 0; }

 private:
  comm::ProcessGroup& group_;
  std::vector<std::unique_ptr<comm::Work>> pending_;
};

std::unique_ptr<Policy> make_replicated_policy(comm::ProcessGroup& group) {
  return std::make_unique<ReplicatedPolicy>(group);
}

}  // namespace aitraining::engine
