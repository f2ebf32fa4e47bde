#include "settings.h"

#include <set>

#include "aitraining/core/error.h"

namespace aitraining::app {
namespace {

train::TrainerOptions::Strategy strategy(const std::string& word) {
  using Strategy = train::TrainerOptions::Strategy;
  if (word == "epoch") return Strategy::epoch;
  return word == "steps" ? Strategy::steps : Strategy::no;
}

format::DType dtype_of(const std::optional<std::string>& name) {
  if (name == "bf16") return format::DType::bf16;
  if (name == "fp16") return format::DType::f16;
  return format::DType::f32;
}

}  // namespace

data::LengthLimit length_limit(const config::TrainingParams& params, const model::ModelConfig& model,
                               std::optional<int64_t> tokenizer_limit) {
  return data::length_limit(
      {params.block_size, params.model_max_length, model.max_position_embeddings, tokenizer_limit});
}

data::SftOptions sft_options(const config::TrainingParams& params, int64_t max_length, int64_t embedding_rows) {
  data::SftOptions options;
  options.text_column = params.text_column;
  options.text_column_given = params.text_column != "text";
  options.chat_template_choice = params.chat_template.value_or("");
  options.response_only = params.response_only_loss;
  options.add_eos_token = params.add_eos_token;
  options.max_length = max_length;
  options.max_samples = params.max_samples.value_or(0);
  options.embedding_rows = embedding_rows;
  return options;
}

std::optional<model::LoraOptions> lora_options(const config::TrainingParams& params) {
  if (!params.peft) return std::nullopt;
  return model::LoraOptions{params.lora_r, static_cast<double>(params.lora_alpha), params.lora_dropout,
                            params.target_modules};
}

engine::Sharding sharding_of(const config::TrainingParams& params) {
  const std::string backend = params.distributed_backend.value_or("ddp");
  if (backend == "zero2") return engine::Sharding::gradients;
  return backend == "ddp" ? engine::Sharding::none : engine::Sharding::parameters;
}

engine::EngineOptions engine_options(const config::TrainingParams& params, const std::string& group_backend,
                                     c10::Device device) {
  engine::EngineOptions options;
  // One process alone has nobody to share with.
  if (group_backend != "single") options.sharding = sharding_of(params);
  options.deterministic = params.deterministic;
  // Ranks on the CPU keep everything in host memory already.
  options.offload_optimizer = params.offload_optimizer.has_value() && !device.is_cpu();
  options.offload_param = params.offload_param.has_value() && !device.is_cpu();
  options.compute = params.mixed_precision == "bf16" ? at::kBFloat16 : at::kFloat;
  options.device = device;
  options.recompute = !params.disable_gradient_checkpointing;
  options.max_grad_norm = params.max_grad_norm;
  options.optimizer.kind = params.optimizer == "sgd" ? engine::OptimizerOptions::Kind::sgd
                                                     : engine::OptimizerOptions::Kind::adamw;
  options.optimizer.weight_decay = params.weight_decay;
  return options;
}

// What the ranks must have been told alike. Paths may differ between machines, and a machine knows its own number.
std::vector<std::pair<std::string, std::string>> settings_of_all_ranks(const config::TrainingParams& params) {
  static const std::set<std::string> own{"model", "data_path", "project_name", "resume_from_checkpoint", "nnodes", "node_rank",
                                         "launcher", "nproc_per_node", "master_addr", "master_port", "log", "ddp_timeout",
                                         "rendezvous_timeout"};
  std::vector<std::pair<std::string, std::string>> settings;
  const auto json = config::to_json(params);
  for (const auto& [name, value] : json.items()) {
    if (!own.contains(name)) settings.emplace_back(name, value.dump());
  }
  return settings;
}

comm::GroupOptions group_options(const config::TrainingParams& params, const launch::RankEnvironment& rank,
                                 c10::Device device) {
  comm::GroupOptions options;
  options.rank = rank.rank;
  options.world_size = rank.world_size;
  options.local_rank = rank.local_rank;
  options.master_addr = rank.master_addr;
  options.master_port = rank.master_port;
  options.timeout = std::chrono::seconds(params.ddp_timeout);
  options.rendezvous_timeout = std::chrono::seconds(params.rendezvous_timeout);
  options.local_world_size = rank.local_world_size;
  options.store_listen_fd = rank.rank == 0 ? rank.store_listen_fd : -1;
  options.store_elsewhere = rank.store_elsewhere;
  options.store_prefix = rank.store_prefix;
  options.settings = settings_of_all_ranks(params);
  // One rank needs no group; a rank that something else started (it has a rendezvous) and that asks for a backend by
  // name gets one all the same, which is how the NCCL path is checked on a machine with one GPU.
  const bool alone = rank.world_size == 1 && (!params.distributed_backend || rank.master_port == 0);
  options.backend = alone ? "single" : (device.is_cuda() ? "nccl" : "gloo");
  return options;
}

train::TrainerOptions trainer_options(const config::TrainingParams& params, int world_size, int64_t train_rows,
                                      int64_t valid_rows) {
  train::TrainerOptions options;
  options.epochs = params.epochs;
  options.shape = {params.batch_size, params.gradient_accumulation, world_size};
  options.seed = static_cast<uint64_t>(params.seed);
  options.peak_rate = params.lr;
  options.warmup_ratio = params.warmup_ratio;
  options.schedule = train::parse_schedule(params.scheduler);
  options.logging_steps =
      params.logging_steps > 0
          ? params.logging_steps
          : train::automatic_logging_steps(valid_rows > 0 ? valid_rows : train_rows, params.batch_size);
  options.eval = strategy(params.eval_strategy);
  options.save = strategy(params.save_strategy);
  options.eval_steps = params.eval_steps;
  options.save_steps = params.save_steps;
  options.check_replicas = params.check_replicas;
  return options;
}

std::string batch_json(const config::TrainingParams& params, const launch::RankEnvironment& rank) {
  const nlohmann::ordered_json batch = {{"batch_size", params.batch_size},
                                        {"gradient_accumulation", params.gradient_accumulation},
                                        {"ranks", rank.world_size},
                                        {"global_batch", params.batch_size * params.gradient_accumulation * rank.world_size},
                                        {"seed", params.seed}};
  return batch.dump();
}

format::DType training_dtype(const config::TrainingParams& params) { return dtype_of(params.mixed_precision); }

format::DType merge_dtype(const config::TrainingParams& params) {
  return params.merge_dtype ? dtype_of(params.merge_dtype) : training_dtype(params);
}

}  // namespace aitraining::app
