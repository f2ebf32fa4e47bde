#pragma once
// Trains a chain of units. One schedule of forward, backward and communication for every way of keeping the
// parameters; a policy (src/engine/policy.h) decides what gathering, reducing and releasing a group mean.
// See docs/architecture.md, "The engine".
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aitraining/comm/process_group.h"
#include "aitraining/ops/unit.h"

namespace aitraining::engine {

struct OptimizerOptions {
  enum class Kind { adamw, sgd } kind = Kind::adamw;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.0;  // sgd: no momentum
};

// How parameters, gradients and optimizer state are kept over ranks (Rajbhandari et al., 2020, arXiv 1910.02054).
enum class Sharding {
  none,        // everything whole on every rank (DDP)
  gradients,   // ZeRO-2: parameters whole, gradients and optimizer state 1/n
  parameters,  // ZeRO-3: parameters too; a unit is whole only around its own computation
};

struct EngineOptions {
  at::ScalarType compute = at::kFloat;  // kBFloat16: bf16 compute over fp32 masters
  c10::Device device = at::kCPU;
  bool recompute = true;                // gradient checkpointing: keep only each unit's input between the passes
  double max_grad_norm = 1.0;           // 0: no clipping
  OptimizerOptions optimizer;
  Sharding sharding = Sharding::none;
  // Gradients are summed in rank order and per micro-batch: equal bits with every sharding at equal rank count.
  bool deterministic = false;
  int64_t resident_units = 0;      // ZeRO-3: so many of the last units stay whole between begin_update and finish_update
  bool offload_optimizer = false;  // fp32 masters and moments in host memory; the step is done there
  bool offload_param = false;      // ZeRO-3: this rank's part of the parameters in host memory
};

struct UpdateResult {
  double grad_norm = 0;   // global, before clipping
  bool skipped = false;   // some gradient was not finite: no rank changed its weights
};

// A range of one parameter that this rank is to write, and what training keeps for it. Tensors are flat fp32, on the
// engine's device. Over all ranks the ranges cover every parameter exactly once.
struct StateRange {
  const ops::ParamGroup* group = nullptr;
  const ops::ParamSpec* param = nullptr;
  int64_t first = 0, count = 0;          // elements of the parameter
  at::Tensor weight;                     // master (fp32), or the frozen weight in the compute type
  at::Tensor exp_avg, exp_avg_sq;        // undefined: frozen, sgd, or no update was done yet
};

class BufferPool;
class Policy;

class Engine {
 public:
  // The chain outlives the engine. All ranks construct it alike.
  Engine(ops::Chain& chain, comm::ProcessGroup& group, EngineOptions options);
  ~Engine();

  // Fills the parameters of groups for which `wanted` is true, each rank what it holds.
  void load(const ops::ParameterReader& reader, const std::function<bool(const ops::ParamGroup&)>& wanted);

  // An update: begin, one micro_step per micro-batch (all ranks the same number), finish.
  void begin_update();
  // Forward and backward; gradients accumulate. Returns the sum of -log p over this rank's labels. `batch` null: this
  // rank has no rows in this micro-batch. `last`: gradients are whole after it, and their reduction begins as soon as
  // each unit's backward is done.
  double micro_step(const ops::Batch* batch, bool last);
  // Waits for the reductions, clips, steps. Collective.
  UpdateResult finish_update(double learning_rate);

  // Forward only: the sum of -log p over this rank's labels. Collective with sharded parameters.
  double evaluate(const ops::Batch* batch);
  // Hidden states before the head, no gradient.
  at::Tensor hidden_states(const ops::Batch& batch);

  std::vector<StateRange> owned_state() const;
  // Optimizer state of a resumed run: readers are asked for every owned range of trained parameters.
  void load_optimizer(const ops::ParameterReader& exp_avg, const ops::ParameterReader& exp_avg_sq,
                      int64_t updates_done);
  int64_t updates_done() const { return updates_done_; }
  // Calls `sink` on rank 0 with every parameter whole, group by group: for saving where the ranks share no folder.
  // Collective.
  void stream_state(const std::function<void(const StateRange&)>& sink);
  // What this rank holds for as long as the engine lives, and at most for a moment, in bytes.
  struct Memory {
    uint64_t weights = 0, gradients = 0, optimizer = 0, buffers = 0;
  };
  Memory memory() const;
  // Hash of the trained weights that all ranks hold whole, for comparing replicas; none when all are sharded.
  std::optional<uint64_t> weights_checksum() const;
  // Trained weights that are whole on every rank (adapters), by parameter. Flat fp32.
  std::vector<StateRange> whole_state() const;
  bool has_moments() const;  // an optimizer state exists: AdamW after its first update
  const ops::Chain& chain() const { return chain_; }
  const EngineOptions& options() const { return options_; }

  struct GroupState;  // private to src/engine

 private:
  void note_uses();
  void make_policies();
  void set_buffer_budget();
  size_t last_needing_weights(size_t end) const;
  void gather(size_t unit);
  void wait_gathered(size_t unit);
  void release(size_t unit);
  void begin_gradients(size_t unit);
  void reduce_after(size_t unit, bool last);
  struct Pass;  // what one micro-batch keeps between forward and backward
  void forward(Pass& pass);
  at::Tensor forward_kept(Pass& pass, size_t unit, const at::Tensor& x);
  void backward(Pass& pass, bool last);
  at::Tensor backward_unit(Pass& pass, size_t unit, const at::Tensor& gradient);
  at::Tensor forward_to_head(const ops::Batch* batch);
  double gradient_norm();
  void step(double learning_rate, double grad_norm);
  void allocate_optimizer();
  ops::Chain& chain_;
  comm::ProcessGroup& group_;
  EngineOptions options_;
  std::vector<std::unique_ptr<GroupState>> states_;
  std::unique_ptr<BufferPool> pool_;
  std::vector<std::unique_ptr<Policy>> policies_;
  std::vector<std::vector<GroupState*>> unit_states_;  // per unit: the groups it uses
  // Groups whose gradients are whole once backward has left this unit (their first use in forward order).
  std::vector<std::vector<GroupState*>> whole_after_;
  // The last unit whose backward reads weights: it stays gathered from forward to backward.
  size_t turning_unit_ = 0;
  at::Tensor anchor_;
  bool trains_input_ = false;  // the first unit's weights are trained
  int64_t updates_done_ = 0;
};

}  // namespace aitraining::engine
