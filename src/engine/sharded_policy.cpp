// ZeRO-2 and ZeRO-3: Rajbhandari et al., 2020, arXiv 1910.02054.
#include "aitraining/core/error.h"
#include "aitraining/ops/kernels.h"
#include "gradient_shards.h"
#include "policy.h"

namespace aitraining::engine {
namespace {

constexpr int64_t kVector = 32;  // elements: two 64-byte vectors of fp32

// What both stages share: gradients and optimizer state are 1/n.
class ShardedPolicy : public Policy {
 public:
  explicit ShardedPolicy(const PolicyContext& context) : context_(context), shards_(context) {}

  void begin_update(State& state) override { state.grad_shard_begun = false; }

  void begin_gradient(State& state) override {
    if (state.group->grad.defined()) return;
    state.group->grad = context_.pool.acquire(owned(state) * ranks(), at::kFloat);
    state.group->begin_update();
  }

  void reduce(State& state, bool) override {
    begin_gradient(state);  // a rank without rows adds zeros
    state.group->finish_update();
    shards_.start(state, std::exchange(state.group->grad, at::Tensor()), true);
  }

  void wait_reduced() override { shards_.wait(); }

  at::Tensor owned_gradient(const State& state) const override { return state.grad_shard; }

  void add_squares(const State& state, SquareSums& sums) const override {
    sums.exchanged[static_cast<size_t>(context_.group.rank())] += ops::kernels::sum_of_squares(state.grad_shard);
  }

  bool sharded() const override { return true; }

 protected:
  int ranks() const { return context_.group.size(); }
  int64_t owned(const State& state) const { return owned_elements(state.group->numel(), ranks()); }
  c10::Device state_device() const { return context_.options.offload_optimizer ? at::kCPU : context_.options.device; }
  // fp32 masters; the computed weights themselves where `part` can be both.
  void allocate_master(State& state, const at::Tensor& part) {
    state.first_element = owned(state) * context_.group.rank();
    if (!state.group->trainable()) return;
    const bool same = part.scalar_type() == at::kFloat && part.device() == state_device() &&
                      !context_.options.offload_optimizer;
    state.master = same ? part : at::zeros({owned(state)}, at::TensorOptions().dtype(at::kFloat).device(state_device()));
    shards_.allocate(state);
  }

  PolicyContext context_;
  GradientShards shards_;
};

class ShardedGradientsPolicy : public ShardedPolicy {
 public:
  using ShardedPolicy::ShardedPolicy;

  void allocate(State& state) override {
    const auto& options = context_.options;
    state.group->compute = at::zeros({owned(state) * ranks()},
                                     at::TensorOptions().dtype(options.compute).device(options.device));
    allocate_master(state, own_part(state));
  }
  void gather(State&) override {}
  void wait_gathered(State&) override {}
  void release(State&) override {}

  void publish(State& state) override {
    if (!state.master.defined()) return;
    auto part = own_part(state);
    if (state.master.const_data_ptr() != part.const_data_ptr()) part.copy_(state.master);
    context_.group.all_gather_into_async(state.group->compute, part)->wait();
  }

  at::Tensor replica(const State& state) const override { return state.group->compute; }

 private:
  at::Tensor own_part(const State& state) const {
    return state.group->compute.narrow(0, owned(state) * context_.group.rank(), owned(state));
  }
};

class FullyShardedPolicy : public ShardedPolicy {
 public:
  using ShardedPolicy::ShardedPolicy;

  void allocate(State& state) override {
    const auto& options = context_.options;
    const c10::Device device = options.offload_param ? c10::Device(at::kCPU) : options.device;
    // Masters that stay on the device in the compute type are what is gathered.
    state.shard = at::zeros({owned(state)}, at::TensorOptions().dtype(options.compute).device(device));
    allocate_master(state, state.shard);
  }

  void gather(State& state) override {
    if (state.users++ > 0) return;
    if (state.resident && state.fresh) return;
    if (!state.group->compute.defined()) {
      state.group->compute = context_.pool.acquire(owned(state) * ranks(), context_.options.compute);
    }
    // An offloaded part travels to the device first; otherwise this is the part itself.
    const auto& options = context_.options;
    auto part = state.shard.to(options.device, at::typeMetaToScalarType(state.shard.dtype()), /*non_blocking=*/true,
                               /*copy=*/options.offload_param);
    state.gathering = context_.group.all_gather_into_async(state.group->compute, part);
    state.fresh = true;
  }

  void wait_gathered(State& state) override {
    AIT_CHECK(state.users > 0, "{} is waited for and was not gathered", state.group->name());
    wait_gathering(state);
  }

  void release(State& state) override {
    AIT_CHECK(state.users > 0, "{} is released more often than it was gathered", state.group->name());
    if (--state.users > 0 || state.resident) return;
    wait_gathering(state);  // a unit that nobody computed with (a rank without rows) may still be on its way
    context_.pool.give_back(std::exchange(state.group->compute, at::Tensor()));
    state.fresh = false;
  }

  void publish(State& state) override {
    if (state.master.defined() && !state.master.is_same(state.shard)) state.shard.copy_(state.master);
    state.fresh = false;
  }

  at::Tensor replica(const State&) const override { return {}; }

 private:
  static void wait_gathering(State& state) {
    if (auto work = std::move(state.gathering)) work->wait();
  }
};

}  // namespace

std::unique_ptr<Policy> make_sharded_gradients_policy(const PolicyContext& context) {
  return std::make_unique<ShardedGradientsPolicy>(context);
}

std::unique_ptr<Policy> make_fully_sharded_policy(const PolicyContext& context) {
  return std::make_unique<FullyShardedPolicy>(context);
}

int64_t owned_elements(int64_t numel, int ranks) {
  const int64_t part = (numel + ranks - 1) / ranks;
  return (part + kVector - 1) / kVector * kVector;
}

}  // namespace aitraining::engine
