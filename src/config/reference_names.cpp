#include "reference_names.h"

#include <algorithm>

namespace aitraining::config {
namespace {

// Parameters of the Python package `aitraining` that have no field here yet: a user who copies a
// command from its documentation reads "not supported yet", not "unknown".
constexpr std::string_view kParameters[] = {
    "use_flash_attention_2",
    "auto_find_batch_size",
    "model_ref",
    "dpo_beta",
    "max_prompt_length",
    "max_completion_length",
    "prompt_text_column",
    "rejected_text_column",
    "image_column",
    "auto_convert_dataset",
    "use_sharegpt_mapping",
    "sharegpt_mapping_enabled",
    "suggested_chat_template",
    "column_mapping",
    "runtime_mapping",
    "map_eos_token",
    "conversation_extension",
    "save_processed_data",
    "unsloth",
    "use_distillation",
    "teacher_model",
    "teacher_prompt_template",
    "student_prompt_template",
    "distill_temperature",
    "distill_alpha",
    "distill_max_teacher_length",
    "use_sweep",
    "sweep_backend",
    "sweep_n_trials",
    "sweep_metric",
    "sweep_direction",
    "sweep_params",
    "post_trial_script",
    "wandb_sweep",
    "wandb_sweep_project",
    "wandb_sweep_entity",
    "wandb_sweep_id",
    "wandb_run_id",
    "use_enhanced_eval",
    "eval_metrics",
    "eval_dataset_path",
    "eval_batch_size",
    "eval_save_predictions",
    "eval_benchmark",
    "chat_format",
    "token_weights",
    "rl_gamma",
    "rl_gae_lambda",
    "rl_kl_coef",
    "rl_value_loss_coef",
    "rl_clip_range",
    "rl_reward_fn",
    "rl_multi_objective",
    "rl_reward_weights",
    "rl_env_type",
    "rl_env_config",
    "rl_reward_model_path",
    "rl_num_ppo_epochs",
    "rl_chunk_size",
    "rl_mini_batch_size",
    "rl_optimize_device_cache",
    "rl_value_clip_range",
    "rl_max_new_tokens",
    "rl_top_k",
    "rl_top_p",
    "rl_temperature",
    "rl_env_module",
    "rl_env_class",
    "rl_num_generations",
    "rl_loss_type",
    "rl_mask_truncated_completions",
    "use_vllm",
    "vllm_mode",
    "vllm_gpu_memory_utilization",
    "vllm_server_url",
    "vllm_tensor_parallel_size",
    "vllm_server_gpus",
    "custom_loss",
    "custom_loss_weights",
    "custom_metrics",
    "use_forward_backward",
    "forward_backward_loss_fn",
    "forward_backward_custom_fn",
    "gradient_accumulation_steps",
    "manual_optimizer_control",
    "optimizer_step_frequency",
    "grad_clip_value",
    "sample_every_n_steps",
    "sample_prompts",
    "sample_temperature",
    "sample_top_k",
    "sample_top_p",
    "manual_checkpoint_control",
    "save_state_every_n_steps",
    "load_state_from",
    "inference_prompts",
    "inference_max_tokens",
    "inference_temperature",
    "inference_top_p",
    "inference_top_k",
    "inference_output",
    "wandb_visualizer",
};

constexpr std::string_view kCommandFlags[] = {"deploy", "inference", "interactive",
                                              "preview_trainer", "help_trainer"};

constexpr std::string_view kCommands[] = {"env",
                                          "plan",
                                          "seq2seq",
                                          "vlm",
                                          "api",
                                          "app",
                                          "chat",
                                          "tui",
                                          "portal",
                                          "setup",
                                          "spacerunner",
                                          "text-classification",
                                          "text-regression",
                                          "token-classification",
                                          "image-classification",
                                          "image-regression",
                                          "object-detection",
                                          "sentence-transformers",
                                          "extractive-qa",
                                          "tabular"};

template <size_t N>
bool contains(const std::string_view (&names)[N], std::string_view name) {
  return std::ranges::find(names, name) != std::end(names);
}

}  // namespace

bool is_reference_parameter(std::string_view name) {
  return contains(kParameters, name);
}
bool is_reference_command_flag(std::string_view name) {
  return contains(kCommandFlags, name);
}
bool is_reference_command(std::string_view name) {
  return contains(kCommands, name);
}

std::span<const std::string_view> reference_parameters() {
  return kParameters;
}

}  // namespace aitraining::config
