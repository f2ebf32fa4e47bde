#pragma once
// Every parameter of a training run. Members only; name, default, range, scope and help of each
// stand once, in src/config/field_table.cpp. Types: std::optional for parameters that may be null.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace aitraining::config {

struct TrainingParams {
  // Basic
  std::string model, project_name, data_path, train_split;
  std::optional<std::string> valid_split;
  std::optional<int64_t> max_samples;
  // Data processing
  bool add_eos_token{};
  int64_t block_size{};        // -1: min(model_max_length, 1024)
  int64_t model_max_length{};  // 2048: taken from the model
  std::string padding;
  std::optional<std::string> chat_template;
  std::string text_column;
  bool apply_chat_template{};
  // Training configuration
  std::string trainer, log, eval_strategy, save_strategy;
  std::optional<bool> packing;
  bool disable_gradient_checkpointing{};
  int64_t logging_steps{}, eval_steps{}, save_steps{}, save_total_limit{};
  std::optional<std::string> mixed_precision, distributed_backend, resume_from_checkpoint,
      attn_implementation;
  int64_t ddp_timeout{};  // seconds
  bool check_replicas{};  // compare a checksum of the weights over ranks after every update
  bool deterministic{};
  std::string zero3_resident;  // a number of units, or auto
  std::optional<std::string> offload_optimizer, offload_param;
  // Hyperparameters
  double lr{}, warmup_ratio{}, weight_decay{}, max_grad_norm{};
  int64_t epochs{}, batch_size{}, gradient_accumulation{}, seed{};
  std::string optimizer, scheduler;
  bool response_only_loss{};
  // PEFT
  bool peft{}, merge_adapter{};
  std::optional<std::string> quantization;
  std::string target_modules;  // all-linear, or a list "q_proj,v_proj", or a regular expression
  int64_t lora_r{}, lora_alpha{};
  double lora_dropout{};
  std::optional<std::string> merge_dtype;  // fp32, bf16, fp16; unset: the training type
  // Launcher
  std::optional<int64_t> nproc_per_node;
  std::string device;  // auto, cpu, cuda
  // Hub and secrets: never written to a file, never on a rank's command line
  std::optional<std::string> token, wandb_token, username, repo_id;
  bool push_to_hub{}, hub_private{};
};

}  // namespace aitraining::config
