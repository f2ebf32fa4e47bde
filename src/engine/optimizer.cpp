#include "optimizer.h"

#include <ATen/ops/_fused_adamw.h>

namespace aitraining::engine {
namespace {

// Ranges of the owned flat buffer that share one weight decay; alignment gaps go with what stands before them (their
// gradient and value are zero, and stay so).
struct Run {
  int64_t begin, end;
  bool decay;
};

std::vector<Run> decay_runs(const Engine::GroupState& state, bool uniform) {
  const int64_t total = state.master.numel();
  if (uniform) return {{0, total, true}};
  std::vector<Run> runs;
  for (const auto& param : state.group->params()) {
    const int64_t begin = std::clamp<int64_t>(param.offset - state.first_element, 0, total);
    const int64_t end = std::clamp<int64_t>(param.offset + param.numel - state.first_element, 0, total);
    if (begin >= end) continue;
    if (!runs.empty() && runs.back().decay == param.decay) {
      runs.back().end = end;
    } else {
      runs.push_back({begin, end, param.decay});
    }
  }
  return runs;
}

void adamw(Engine::GroupState& state, const at::Tensor& gradient, const Run& run, const OptimizerOptions& o,
           double learning_rate, double clip, int64_t update) {
  auto part = [&](const at::Tensor& flat) { return flat.narrow(0, run.begin, run.end - run.begin); };
  const auto scalar = state.master.options();
  // The kernel divides gradients by grad_scale: clipping costs no pass of its own.
  std::optional<at::Tensor> scale;
  if (clip != 1.0) scale = at::full({}, 1.0 / clip, scalar);
  auto step = at::full({}, static_cast<double>(update), scalar);
  at::_fused_adamw_({part(state.master)}, {part(gradient)}, {part(state.exp_avg)}, {part(state.exp_avg_sq)}, {}, {step},
                    learning_rate, o.beta1, o.beta2, run.decay ? o.weight_decay : 0.0, o.eps, false, false, scale, {});
}

}  // namespace

void optimizer_step(Engine::GroupState& state, const at::Tensor& gradient, const OptimizerOptions& o,
                    double learning_rate, double clip, int64_t update) {
  for (const Run& run : decay_runs(state, o.weight_decay == 0.0)) {
    if (o.kind == OptimizerOptions::Kind::adamw) {
      adamw(state, gradient, run, o, learning_rate, clip, update);
      continue;
    }
    auto master = state.master.narrow(0, run.begin, run.end - run.begin);
    if (run.decay && o.weight_decay != 0.0) master.mul_(1.0 - learning_rate * o.weight_decay);
    master.add_(gradient.narrow(0, run.begin, run.end - run.begin), -learning_rate * clip);
  }
}

}  // namespace aitraining::engine
