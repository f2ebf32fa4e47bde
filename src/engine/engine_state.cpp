// What goes into files and comes out of them.
#include <algorithm>

#include "aitraining/core/strings.h"
#include "buffer_pool.h"
#include "owned_range.h"
#include "policy.h"

namespace aitraining::engine {
namespace {

void add_ranges(const Engine::GroupState& state, std::vector<StateRange>& ranges) {
  visit_owned(state, [&](const OwnedRange& r) {
    StateRange range{state.group, r.param, r.first, r.count, {}, {}, {}};
    range.weight = state.owned().narrow(0, r.begin, r.count);
    if (state.exp_avg.defined()) {
      range.exp_avg = state.exp_avg.narrow(0, r.begin, r.count);
      range.exp_avg_sq = state.exp_avg_sq.narrow(0, r.begin, r.count);
    }
    ranges.push_back(std::move(range));
  });
}

}  // namespace

void visit_owned(const Engine::GroupState& state, const std::function<void(const OwnedRange&)>& f) {
  const int64_t begin = state.first_element, end = begin + state.owned().numel();
  for (const auto& param : state.group->params()) {
    const int64_t from = std::max(begin, param.offset), to = std::min(end, param.offset + param.numel);
    if (from < to) f({&param, from - param.offset, to - from, from - begin});
  }
}

std::vector<StateRange> Engine::owned_state() const {
  std::vector<StateRange> ranges;
  for (const auto& state : states_) {
    if (state->policy->writes(group_.rank())) add_ranges(*state, ranges);
  }
  return ranges;
}

std::vector<StateRange> Engine::whole_state() const {
  std::vector<StateRange> ranges;
  for (const auto& state : states_) {
    if (state->group->whole()) add_ranges(*state, ranges);
  }
  return ranges;
}

void Engine::stream_state(const std::function<void(const StateRange&)>& sink) {
  for (const auto& state : states_) {
    GroupState whole;
    whole.group = state->group;
    std::vector<at::Tensor> buffers;
    // One rank's range becomes all of the group; a group that is whole already stays where it is.
    auto collect = [&](const at::Tensor& owned) -> at::Tensor {
      if (!owned.defined() || !state->policy->sharded()) return owned;
      buffers.push_back(pool_->acquire(owned.numel() * group_.size(), owned.scalar_type()));
      group_.all_gather_into_async(buffers.back(), owned.to(options_.device))->wait();
      return buffers.back();
    };
    whole.master = collect(state->owned());
    whole.exp_avg = collect(state->exp_avg);
    whole.exp_avg_sq = collect(state->exp_avg_sq);
    if (group_.rank() == 0) {
      std::vector<StateRange> ranges;
      add_ranges(whole, ranges);
      for (const auto& range : ranges) sink(range);
    }
    for (auto& buffer : buffers) pool_->give_back(std::move(buffer));
  }
}

void Engine::load_optimizer(const ops::ParameterReader& exp_avg, const ops::ParameterReader& exp_avg_sq,
                            int64_t updates_done) {
  updates_done_ = updates_done;
  if (options_.optimizer.kind != OptimizerOptions::Kind::adamw || updates_done == 0) return;
  allocate_optimizer();
  auto fill = [&](const ops::ParameterReader& reader, at::Tensor& flat, const GroupState& state) {
    visit_owned(state, [&](const OwnedRange& range) {
      auto staged = at::empty({range.count}, at::kFloat);
      reader(*range.param, range.first, staged);
      flat.narrow(0, range.begin, range.count).copy_(staged);
    });
  };
  for (auto& state : states_) {
    if (!state->group->trainable()) continue;
    fill(exp_avg, state->exp_avg, *state);
    fill(exp_avg_sq, state->exp_avg_sq, *state);
  }
}

std::optional<uint64_t> Engine::weights_checksum() const {
  uint64_t sum = 0;
  bool any = false;
  for (const auto& state : states_) {
    const auto replica = state->group->trainable() ? state->policy->replica(*state) : at::Tensor();
    if (!replica.defined()) continue;
    any = true;
    const auto host = replica.cpu();
    sum = hash64(host.const_data_ptr(), host.nbytes(), sum);
  }
  return any ? std::optional(sum) : std::nullopt;
}

bool Engine::has_moments() const {
  return std::any_of(states_.begin(), states_.end(), [](const auto& state) { return state->exp_avg.defined(); });
}

Engine::Memory Engine::memory() const {
  Memory memory;
  const bool adamw = options_.optimizer.kind == OptimizerOptions::Kind::adamw;
  for (const auto& state : states_) {
    std::vector<const void*> seen;  // masters and weights may be one
    for (const at::Tensor& t : {state->master, state->shard, state->resident ? at::Tensor() : state->group->compute}) {
      if (!t.defined() || std::find(seen.begin(), seen.end(), t.storage().data()) != seen.end()) continue;
      seen.push_back(t.storage().data());
      memory.weights += t.storage().nbytes();
    }
    for (const at::Tensor& t : {state->grad_shard, state->group->grad}) memory.gradients += t.defined() ? t.nbytes() : 0;
    if (adamw && state->master.defined()) memory.optimizer += 2 * state->master.nbytes();
  }
  memory.buffers = pool_->budget();
  return memory;
}

}  // namespace aitraining::engine
