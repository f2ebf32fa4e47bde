#include "aitraining/forecast/forecast.h"

#include <algorithm>
#include <filesystem>

#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"
#include "aitraining/data/length_limit.h"
#include "aitraining/data/plan.h"
#include "aitraining/model/model_config.h"
#include "aitraining/text/assets.h"
#include "rows.h"
#include "setup.h"

namespace aitraining::forecast {
namespace {

constexpr int64_t kExampleRows = 1000;

int64_t bytes_of(const std::optional<std::string>& precision) {
  return precision == "bf16" || precision == "fp16" ? 2 : 4;
}

// What a rank may use: of a GPU what is free; of the host its share of what is left.
uint64_t capacity_of(const launch::DeviceInventory& devices, const launch::LaunchPlan& plan) {
  if (plan.device != "cuda")
    return devices.memory_free / static_cast<uint64_t>(std::max(1, plan.ranks));
  uint64_t least = 0;
  for (const auto& gpu : devices.gpus) {
    const uint64_t free = gpu.memory_free > 0 ? gpu.memory_free : gpu.memory_total;
    if (free > 0 && (least == 0 || free < least)) least = free;
  }
  return least;
}

void add_disk(const config::TrainingParams& params, const RunSetup& setup, ModelForecast& out) {
  const int64_t trained_bytes = bytes_of(params.mixed_precision);
  const int64_t merged_bytes =
      bytes_of(params.merge_dtype ? params.merge_dtype : params.mixed_precision);
  out.final_model_bytes = trained_bytes * setup.trained();
  if (params.peft && params.merge_adapter)
    out.final_model_bytes += merged_bytes * setup.shape.base();
  // Masters too, where the saved weights are rounded.
  const int64_t masters = setup.bf16 ? 4 : 0;
  out.checkpoint_bytes = (trained_bytes + (setup.adamw ? 8 : 0) + masters) * setup.trained();
}

ModelForecast read_model(const config::TrainingParams& params, const launch::LaunchPlan& plan,
                         const Rows& rows, uint64_t capacity) {
  const auto source = model::open_model(params.model, model::ReadDepth::headers);
  const auto limit = data::length_limit({params.block_size, params.model_max_length,
                                         source.config.max_position_embeddings,
                                         text::tokenizer_length_limit(params.model)});
  const bool packed = params.packing.value_or(false);
  const int64_t tokens_per_row = packed ? limit.tokens : token_bound(rows, limit.tokens);
  const RunSetup setup = setup_of(params, plan, source.config, tokens_per_row);
  const RankMemory memory = memory_per_rank(setup);
  ModelForecast out;
  out.architecture = source.config.architecture;
  out.parameters = setup.shape.base();
  out.trained = setup.trained();
  out.tokens_per_micro_batch = setup.tokens;
  out.length_limit = fmt::format("{} tokens a row ({})", limit.tokens, limit.reason);
  out.memory = {{"weights", memory.weights},     {"gradients", memory.gradients},
                {"optimizer", memory.optimizer}, {"activations", memory.activations},
                {"logits", memory.logits},       {"buffers", memory.buffers},
                {"process", memory.process}};
  out.memory_total = memory.total();
  if (capacity > 0) {
    out.fits = static_cast<uint64_t>(memory.total()) <= capacity;
    if (!*out.fits)
      out.remedies =
          remedies(params, plan, source.config, tokens_per_row, static_cast<int64_t>(capacity));
  }
  add_disk(params, setup, out);
  out.traffic_per_update = traffic_per_update(setup);
  return out;
}

}  // namespace

Forecast make_forecast(const config::ResolvedConfig& config, const launch::DeviceInventory& devices,
                       const launch::LaunchPlan& plan) {
  const config::TrainingParams& params = config.params;
  Forecast out;
  out.config = config;
  out.plan = plan;
  out.devices = devices;
  out.command = launch::accelerate_command(plan, params, config.task);
  out.capacity = capacity_of(devices, plan);
  Rows rows;
  // A plan is made before everything is in place: what cannot be read is said, and the rest is
  // told.
  try {
    rows = count_rows(params, params.train_split);
    out.rows = rows.count;
    if (!rows.count) out.rows_problem = rows.file + " is too large to be counted at once";
  } catch (const UserError& e) {
    out.rows_problem = e.what();
  }
  try {
    if (config.task == config::Task::llm) {
      out.model = read_model(params, plan, rows, out.capacity);
    } else {
      out.model_problem =
          fmt::format("memory of task {} is not known: this build does not train it",
                      config::task_name(config.task));
    }
  } catch (const UserError& e) {
    out.model_problem = e.what();
  }
  const data::BatchShape shape{params.batch_size, params.gradient_accumulation, plan.world_size()};
  out.rows_per_update = params.batch_size * params.gradient_accumulation * plan.world_size();
  const int64_t per_epoch = data::updates_per_epoch(out.rows.value_or(kExampleRows), shape);
  out.updates = out.rows ? per_epoch * params.epochs : per_epoch;
  return out;
}

}  // namespace aitraining::forecast
