#pragma once
// Every parameter of a training run. Members only; name, default, range, scope and help of each
// stand once, in src/config/table/. Types: std::optional for parameters that may be null.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace aitraining::config {

// What is trained. Each task has its own set of parameters and its own defaults.
enum class Task { llm, seq2seq, vlm };

using StringMap = std::map<std::string, std::string>;

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
  std::optional<std::string> chat_template, chat_format, suggested_chat_template, token_weights;
  std::string text_column, target_column;
  std::optional<std::string> prompt_text_column, rejected_text_column, image_column;
  bool apply_chat_template{}, auto_convert_dataset{}, use_sharegpt_mapping{},
      sharegpt_mapping_enabled{}, map_eos_token{};
  std::optional<StringMap> column_mapping, runtime_mapping;
  int64_t conversation_extension{};
  std::string save_processed_data;
  int64_t max_seq_length{}, max_target_length{};  // seq2seq: tokens of source and target
  // Training configuration
  std::string trainer, log, eval_strategy, save_strategy;
  std::optional<bool> packing, wandb_visualizer;
  bool disable_gradient_checkpointing{}, auto_find_batch_size{}, use_flash_attention_2{}, unsloth{};
  int64_t logging_steps{}, eval_steps{}, save_steps{}, save_total_limit{};
  std::optional<std::string> mixed_precision, distributed_backend, resume_from_checkpoint,
      attn_implementation;
  int64_t ddp_timeout{};  // seconds
  bool check_replicas{};  // compare a checksum of the weights over ranks after every update
  bool deterministic{};
  std::string zero3_resident;  // a number of units, or auto
  std::optional<std::string> offload_optimizer, offload_param;
  int64_t early_stopping_patience{};
  double early_stopping_threshold{};
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
  // DPO and ORPO
  std::optional<std::string> model_ref;
  double dpo_beta{};
  int64_t max_prompt_length{};
  std::optional<int64_t> max_completion_length;
  // Knowledge distillation
  bool use_distillation{};
  std::optional<std::string> teacher_model, teacher_prompt_template, student_prompt_template;
  double distill_temperature{}, distill_alpha{};
  int64_t distill_max_teacher_length{};
  // Hyperparameter sweep
  bool use_sweep{}, wandb_sweep{};
  std::optional<std::string> sweep_backend, sweep_metric, sweep_direction, sweep_params,
      post_trial_script, wandb_sweep_project, wandb_sweep_entity, wandb_sweep_id, wandb_run_id;
  int64_t sweep_n_trials{};
  // Enhanced evaluation
  bool use_enhanced_eval{}, eval_save_predictions{};
  std::optional<std::string> eval_metrics, eval_dataset_path, eval_benchmark;
  int64_t eval_batch_size{};
  // Reinforcement learning
  double rl_gamma{}, rl_gae_lambda{}, rl_kl_coef{}, rl_value_loss_coef{}, rl_clip_range{},
      rl_value_clip_range{}, rl_top_p{}, rl_temperature{};
  std::optional<std::string> rl_reward_fn, rl_reward_weights, rl_env_type, rl_env_config,
      rl_reward_model_path, rl_env_module, rl_env_class;
  bool rl_multi_objective{}, rl_optimize_device_cache{}, rl_mask_truncated_completions{};
  int64_t rl_num_ppo_epochs{}, rl_chunk_size{}, rl_mini_batch_size{}, rl_max_new_tokens{},
      rl_top_k{}, rl_num_generations{};
  std::string rl_loss_type;
  bool use_vllm{};
  std::string vllm_mode;
  double vllm_gpu_memory_utilization{};
  std::optional<std::string> vllm_server_url;
  int64_t vllm_tensor_parallel_size{}, vllm_server_gpus{};
  // Advanced
  std::optional<std::string> custom_loss, custom_loss_weights, custom_metrics,
      forward_backward_loss_fn, forward_backward_custom_fn, sample_prompts, load_state_from;
  bool use_forward_backward{}, manual_optimizer_control{}, manual_checkpoint_control{};
  int64_t gradient_accumulation_steps{}, optimizer_step_frequency{}, sample_every_n_steps{},
      sample_top_k{}, save_state_every_n_steps{};
  std::optional<double> grad_clip_value;
  double sample_temperature{}, sample_top_p{};
  // Inference
  std::optional<std::string> inference_prompts, inference_output;
  int64_t inference_max_tokens{}, inference_top_k{};
  double inference_temperature{}, inference_top_p{};
  // Launcher
  std::optional<int64_t> nproc_per_node, master_port;
  int64_t nnodes{}, node_rank{}, rendezvous_timeout{};  // seconds
  std::optional<std::string> master_addr, launcher;
  std::string preflight;
  std::string device;  // auto, cpu, cuda
  // Hub and secrets: never written to a file, never on a rank's command line
  std::optional<std::string> token, wandb_token, username, repo_id;
  bool push_to_hub{}, hub_private{};
};

}  // namespace aitraining::config
