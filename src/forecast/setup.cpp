#include "setup.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "aitraining/core/strings.h"

namespace aitraining::forecast {
namespace {

constexpr size_t kShown = 3;

// A run that could be started instead.
struct Candidate {
  std::vector<std::string> flags;
  config::TrainingParams params;
  launch::LaunchPlan plan;
  int64_t tokens_per_row;
};

using Change = bool (*)(Candidate&);  // false: changes nothing

bool recompute(Candidate& c) {
  if (!c.params.disable_gradient_checkpointing) return false;
  c.params.disable_gradient_checkpointing = false;
  c.flags.emplace_back("without --disable-gradient-checkpointing");
  return true;
}

// The same rows an update, in smaller pieces.
bool smaller_batch(Candidate& c) {
  if (c.params.batch_size <= 1) return false;
  const int64_t rows = c.params.batch_size * c.params.gradient_accumulation;
  c.params.batch_size = 1;
  c.params.gradient_accumulation = rows;
  c.flags.push_back(fmt::format("--batch-size 1 --gradient-accumulation {}", rows));
  return true;
}

bool shard(Candidate& c) {
  if (c.plan.world_size() < 2 || c.plan.engine == "zero3") return false;
  c.plan.engine = "zero3";
  c.flags.emplace_back("--distributed-backend zero3");
  return true;
}

bool half_precision(Candidate& c) {
  if (c.params.mixed_precision) return false;
  c.params.mixed_precision = c.plan.precision = "bf16";
  c.flags.emplace_back("--mixed-precision bf16");
  return true;
}

bool adapters(Candidate& c) {
  if (c.params.peft) return false;
  c.params.peft = true;
  c.flags.emplace_back("--peft");
  return true;
}

bool shorter_rows(Candidate& c) {
  if (c.tokens_per_row <= 256) return false;
  c.tokens_per_row = c.tokens_per_row / 2;
  c.flags.push_back(fmt::format("--block-size {}", c.tokens_per_row));
  return true;
}

// In the order of what they cost.
const std::vector<std::vector<Change>>& changes() {
  static const std::vector<std::vector<Change>> all{
      {recompute},
      {smaller_batch},
      {shard},
      {half_precision},
      {adapters},
      {shorter_rows},
      {recompute, smaller_batch},
      {smaller_batch, shard},
      {shard, half_precision},
      {smaller_batch, adapters},
      {adapters, shard},
      {recompute, smaller_batch, shard, half_precision, adapters},
      {recompute, smaller_batch, shard, half_precision, adapters, shorter_rows}};
  return all;
}

int64_t needed(const Candidate& c, const model::ModelConfig& model) {
  return memory_per_rank(setup_of(c.params, c.plan, model, c.tokens_per_row)).total();
}

}  // namespace

RunSetup setup_of(const config::TrainingParams& params, const launch::LaunchPlan& plan,
                  const model::ModelConfig& model, int64_t tokens_per_row) {
  RunSetup setup;
  std::optional<Lora> lora;
  if (params.peft) lora = Lora{params.lora_r, params.target_modules};
  setup.shape = shape_of(model, lora);
  setup.engine = plan.engine;
  setup.ranks = plan.world_size();
  setup.cuda = plan.device == "cuda";
  setup.bf16 = plan.precision == "bf16";
  setup.peft = params.peft;
  setup.recompute = !params.disable_gradient_checkpointing;
  setup.adamw = params.optimizer != "sgd";
  setup.lora_dropout = params.lora_dropout > 0;
  setup.deterministic = params.deterministic;
  setup.offload_optimizer =
      setup.cuda && params.offload_optimizer && *params.offload_optimizer != "none";
  setup.offload_param = setup.cuda && params.offload_param && *params.offload_param != "none";
  // "auto" takes only memory that is left over.
  if (params.zero3_resident != "auto")
    setup.resident_units = std::atoll(params.zero3_resident.c_str());
  setup.tokens = params.batch_size * tokens_per_row;
  setup.accumulation = params.gradient_accumulation;
  return setup;
}

std::vector<Remedy> remedies(const config::TrainingParams& params, const launch::LaunchPlan& plan,
                             const model::ModelConfig& model, int64_t tokens_per_row,
                             int64_t capacity) {
  std::vector<Remedy> found;
  for (const auto& several : changes()) {
    Candidate candidate{{}, params, plan, tokens_per_row};
    int changed = 0;
    for (Change change : several) changed += change(candidate) ? 1 : 0;
    if (changed == 0) continue;
    const std::string flags = join(candidate.flags, " ");
    const int64_t bytes = needed(candidate, model);
    const bool known = std::ranges::any_of(
        found, [&](const Remedy& r) { return flags.find(r.flags) != std::string::npos; });
    if (bytes > capacity || known) continue;
    found.push_back({flags, bytes});
    if (found.size() == kShown) break;
  }
  return found;
}

}  // namespace aitraining::forecast
