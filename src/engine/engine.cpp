#include "aitraining/engine/engine.h"

#include <algorithm>
#include <cmath>

#include <torch/csrc/autograd/autograd.h>

#include "aitraining/core/error.h"
#include "aitraining/ops/kernels.h"
#include "optimizer.h"
#include "owned_range.h"
#include "policy.h"

namespace aitraining::engine {

Engine::Engine(ops::Chain& chain, comm::ProcessGroup& group, EngineOptions options)
    : chain_(chain), group_(group), options_(options), pool_(std::make_unique<BufferPool>(options.device)) {
  for (auto& g : chain_.groups) {
    states_.push_back(std::make_unique<GroupState>());
    states_.back()->group = g.get();
  }
  note_uses();
  make_policies();
  for (auto& state : states_) state->policy->allocate(*state);
  set_buffer_budget();
  anchor_ = at::zeros({1}, at::TensorOptions().device(options_.device));
}

Engine::~Engine() {
  // Handles in the chain must not keep buffers alive beyond the engine.
  for (auto& g : chain_.groups) {
    g->compute.reset();
    g->grad.reset();
  }
}

void Engine::note_uses() {
  const auto& units = chain_.units;
  unit_states_.resize(units.size());
  whole_after_.resize(units.size());
  for (auto& state : states_) {
    // Backward runs from the last unit to the first: a group's gradient is whole when its first user is done.
    bool first_use = state->group->trainable();
    for (size_t u = 0; u < units.size(); ++u) {
      const auto& used = units[u]->groups();
      if (std::find(used.begin(), used.end(), state->group) == used.end()) continue;
      unit_states_[u].push_back(state.get());
      if (first_use) whole_after_[u].push_back(state.get());
      first_use = false;
    }
  }
  for (const auto* g : units.front()->groups()) trains_input_ = trains_input_ || g->trainable();
  turning_unit_ = last_needing_weights(units.size());
}

// The last unit before `end` whose backward pass reads weights; units.size() when there is none.
size_t Engine::last_needing_weights(size_t end) const {
  for (size_t u = end; u-- > 0;) {
    if (chain_.units[u]->backward_needs_weights() && (u > 0 || trains_input_)) return u;
  }
  return chain_.units.size();
}

void Engine::make_policies() {
  const PolicyContext context{group_, options_, *pool_};
  const bool strict = options_.deterministic;
  auto keep = [&](std::unique_ptr<Policy> policy) {
    policies_.push_back(std::move(policy));
    return policies_.back().get();
  };
  Policy* whole = keep(make_replicated_policy(context, strict ? Reduction::per_update_in_order : Reduction::per_update));
  Policy* sharded = nullptr;
  switch (options_.sharding) {
    case Sharding::none:
      sharded = strict ? keep(make_replicated_policy(context, Reduction::per_micro_in_order)) : whole;
      break;
    case Sharding::gradients: sharded = keep(make_sharded_gradients_policy(context)); break;
    case Sharding::parameters: sharded = keep(make_fully_sharded_policy(context)); break;
  }
  for (auto& state : states_) {
    const bool has_gradient_to_shard = state->group->trainable() || options_.sharding == Sharding::parameters;
    state->policy = !state->group->whole() && has_gradient_to_shard ? sharded : whole;
  }
  if (options_.sharding != Sharding::none) pool_->on_pressure([sharded] { sharded->wait_reduced(); });
}

// Two gathered units and one gradient in fp32 (12 bytes an element of the largest unit), and what stays gathered.
void Engine::set_buffer_budget() {
  uint64_t largest = 0, resident = 0;
  for (size_t u = 0; u < unit_states_.size(); ++u) {
    uint64_t elements = 0;
    const bool stays = static_cast<int64_t>(unit_states_.size() - u) <= options_.resident_units;
    for (GroupState* state : unit_states_[u]) {
      if (state->group->whole()) continue;
      const auto n = static_cast<uint64_t>(owned_elements(state->group->numel(), group_.size()) * group_.size());
      elements += n;
      if (!stays || state->resident) continue;
      state->resident = true;
      resident += n * c10::elementSize(options_.compute);
    }
    largest = std::max(largest, elements);
  }
  // Where parameters are whole, the pool holds a gradient and the pieces received for it.
  pool_->set_budget(options_.sharding == Sharding::parameters ? 12 * largest + resident : 8 * largest);
}

void Engine::load(const ops::ParameterReader& reader, const std::function<bool(const ops::ParamGroup&)>& wanted) {
  for (auto& state : states_) {
    if (!wanted(*state->group)) continue;
    visit_owned(*state, [&](const OwnedRange& range) {
      auto place = state->owned().narrow(0, range.begin, range.count);
      if (place.is_cpu()) {
        reader(*range.param, range.first, place);
      } else {
        auto staged = at::empty({range.count}, at::TensorOptions().dtype(place.scalar_type()));
        reader(*range.param, range.first, staged);
        place.copy_(staged);
      }
    });
    state->policy->publish(*state);
  }
}

void Engine::begin_update() {
  for (auto& state : states_) {
    if (state->group->trainable()) state->policy->begin_update(*state);
  }
}

void Engine::gather(size_t unit) {
  for (GroupState* state : unit_states_[unit]) state->policy->gather(*state);
}

void Engine::wait_gathered(size_t unit) {
  for (GroupState* state : unit_states_[unit]) state->policy->wait_gathered(*state);
}

void Engine::release(size_t unit) {
  for (GroupState* state : unit_states_[unit]) state->policy->release(*state);
}

void Engine::begin_gradients(size_t unit) {
  for (GroupState* state : unit_states_[unit]) {
    if (state->group->trainable()) state->policy->begin_gradient(*state);
  }
}

void Engine::reduce_after(size_t unit, bool last) {
  for (GroupState* state : whole_after_[unit]) state->policy->reduce(*state, last);
}

// The graph is cut between units: each unit's input is a leaf, and backward of unit i starts from the gradient that
// unit i+1 left at its input. With recompute only these leaves live between the passes.
struct Engine::Pass {
  const ops::Batch* batch = nullptr;  // null: this rank has no rows, and only takes part in the communication
  std::vector<at::Tensor> inputs, outputs;
  at::Tensor result;                  // of the last unit
};

double Engine::micro_step(const ops::Batch* batch, bool last) {
  const size_t units = chain_.units.size();
  Pass pass{batch != nullptr && batch->num_labels() > 0 ? batch : nullptr, std::vector<at::Tensor>(units),
            std::vector<at::Tensor>(units), {}};
  forward(pass);
  const double loss = pass.batch != nullptr ? pass.result.item<double>() : 0;
  backward(pass, last);
  return loss;
}

// The next unit's parameters are asked for before the current unit computes.
void Engine::forward(Pass& pass) {
  const size_t units = chain_.units.size();
  at::Tensor x = anchor_;
  gather(0);
  for (size_t u = 0; u < units; ++u) {
    if (u + 1 < units) gather(u + 1);
    wait_gathered(u);
    if (pass.batch != nullptr) x = forward_kept(pass, u, x);
    if (u != turning_unit_) release(u);
  }
  pass.result = x;
}

// One unit's forward pass with what its backward pass will need.
at::Tensor Engine::forward_kept(Pass& pass, size_t unit, const at::Tensor& x) {
  const auto& u = *chain_.units[unit];
  const bool differentiated = unit > 0 || trains_input_;
  pass.inputs[unit] = x.detach().requires_grad_(differentiated);
  const bool keep_graph = differentiated && (!options_.recompute || !u.backward_needs_weights());
  at::AutoGradMode mode(keep_graph);
  if (unit + 1 == chain_.units.size()) begin_gradients(unit);  // the head makes its gradients now
  auto y = u.forward({pass.inputs[unit]}, *pass.batch)[0];
  if (keep_graph) pass.outputs[unit] = y;
  return y.detach();
}

void Engine::backward(Pass& pass, bool last) {
  const size_t units = chain_.units.size();
  at::Tensor gradient;
  if (pass.batch != nullptr) gradient = at::ones_like(pass.result);
  pass.result.reset();
  for (size_t u = units; u-- > 0;) {
    const bool gathered = u <= turning_unit_ && last_needing_weights(u + 1) == u;
    if (gathered) {
      if (const size_t next = last_needing_weights(u); next < units) gather(next);
      wait_gathered(u);
    }
    if (pass.batch != nullptr) gradient = backward_unit(pass, u, gradient);
    if (gathered) release(u);
    reduce_after(u, last);
  }
}

// Returns the gradient of the unit's input, and lets go of what was kept for it.
at::Tensor Engine::backward_unit(Pass& pass, size_t unit, const at::Tensor& gradient) {
  at::Tensor in = std::move(pass.inputs[unit]), out = std::move(pass.outputs[unit]);
  if (!in.requires_grad()) return {};
  at::AutoGradMode mode(true);
  begin_gradients(unit);
  if (!out.defined()) out = chain_.units[unit]->forward({in}, *pass.batch)[0];
  torch::autograd::backward({out}, {gradient});
  return in.grad();
}

void Engine::allocate_optimizer() {
  if (options_.optimizer.kind != OptimizerOptions::Kind::adamw) return;
  for (auto& state : states_) {
    if (!state->group->trainable() || state->exp_avg.defined()) continue;
    state->exp_avg = at::zeros_like(state->master);
    state->exp_avg_sq = at::zeros_like(state->master);
  }
}

UpdateResult Engine::finish_update(double learning_rate) {
  for (auto& policy : policies_) policy->wait_reduced();
  const double norm = gradient_norm();
  // The norm is one number, equal on all ranks: they agree on skipping without another collective.
  if (!std::isfinite(norm)) return {norm, true};
  step(learning_rate, norm);
  return {norm, false};
}

double Engine::gradient_norm() {
  const auto ranks = static_cast<size_t>(group_.size());
  SquareSums sums{0, std::vector<double>(ranks), std::vector<double>(ranks)};
  for (auto& state : states_) {
    if (state->group->trainable()) state->policy->add_squares(*state, sums);
  }
  // Each entry is one rank's number plus zeros: exact, however it is reduced.
  if (options_.sharding != Sharding::none) sums.exchanged = group_.sum(sums.exchanged);
  double squares = sums.whole;
  for (size_t r = 0; r < ranks; ++r) squares += sums.by_rank[r] + sums.exchanged[r];
  return std::sqrt(squares);
}

void Engine::step(double learning_rate, double grad_norm) {
  allocate_optimizer();
  ++updates_done_;
  double clip = 1.0;
  if (options_.max_grad_norm > 0) clip = std::min(1.0, options_.max_grad_norm / (grad_norm + 1e-6));
  for (auto& state : states_) {
    if (!state->group->trainable()) continue;
    const auto gradient = state->policy->owned_gradient(*state).to(state->master.device());
    optimizer_step(*state, gradient, options_.optimizer, learning_rate, clip, updates_done_);
    state->policy->publish(*state);
  }
}

// Hidden states before the head, whose parameters are gathered then.
at::Tensor Engine::forward_to_head(const ops::Batch* batch) {
  at::NoGradGuard no_grad;
  at::Tensor x = anchor_;
  gather(0);
  for (size_t u = 0; u + 1 < chain_.units.size(); ++u) {
    gather(u + 1);
    wait_gathered(u);
    if (batch != nullptr) x = chain_.units[u]->forward({x}, *batch)[0];
    release(u);
  }
  wait_gathered(chain_.units.size() - 1);
  return x;
}

at::Tensor Engine::hidden_states(const ops::Batch& batch) {
  auto x = forward_to_head(&batch);
  release(chain_.units.size() - 1);
  return x;
}

double Engine::evaluate(const ops::Batch* batch) {
  at::NoGradGuard no_grad;
  if (batch != nullptr && batch->num_labels() == 0) batch = nullptr;
  const size_t head = chain_.units.size() - 1;
  double loss = 0;
  const auto x = forward_to_head(batch);
  if (batch != nullptr) loss = chain_.units[head]->forward({x}, *batch)[0].item<double>();
  release(head);
  return loss;
}

}  // namespace aitraining::engine
