#include "field_table.h"

namespace aitraining::config {
namespace {

using P = TrainingParams;

std::vector<Field> basic_fields() {
  return {
      {.member = &P::model, .name = "model", .group = Group::basic, .initial = "",
       .help = "Base model: folder in Hugging Face form, or a .gguf file",
       .missing = "Model must be specified (--model, or base_model in the file)",
       .also_called = {"base_model", "model_name_or_path", "model_name"}},
      {.member = &P::project_name, .name = "project_name", .group = Group::basic, .initial = "",
       .help = "Output folder; a relative one lives in the current directory or AUTOTRAIN_PROJECTS_DIR",
       .missing = "Project name must be specified (--project-name, or project_name in the file)",
       .also_called = {"output_dir", "output", "project"}},
      {.member = &P::data_path, .name = "data_path", .group = Group::basic, .initial = "",
       .help = "Folder with <split>.csv, .jsonl, .json or .tsv, or one such file",
       .missing = "Data path must be specified (--data-path, or data.path in the file)",
       .also_called = {"data", "dataset", "dataset_path"}},
      {.member = &P::train_split, .name = "train_split", .group = Group::basic, .initial = "train",
       .help = "Training split: the file's name without its ending", .missing = "train_split must not be empty"},
      {.member = &P::valid_split, .name = "valid_split", .group = Group::basic,
       .help = "Validation split; turns evaluation on", .also_called = {"eval_split", "validation_split", "test_split"}},
      {.member = &P::max_samples, .name = "max_samples", .group = Group::basic,
       .help = "Use this many rows, evenly spaced", .range = {.min = 1}},
  };
}

std::vector<Field> data_fields() {
  return {
      {.member = &P::add_eos_token, .name = "add_eos_token", .group = Group::data, .initial = true,
       .help = "End every plain text row with the end-of-sequence token"},
      {.member = &P::block_size, .name = "block_size", .group = Group::data, .initial = -1,
       .help = "Tokens per row at most; -1: min(model_max_length, 1024)", .range = {.min = 2, .or_else = -1},
       .also_called = {"max_length", "max_seq_length", "cutoff_len"}},
      {.member = &P::model_max_length, .name = "model_max_length", .group = Group::data, .initial = 2048,
       .help = "Context limit; 2048: taken from the model", .range = {.min = 2}},
      {.member = &P::padding, .name = "padding", .group = Group::data, .initial = "right",
       .help = "Padding side; no effect, since batches carry no padding", .choices = {"left", "right"},
       .null_means = "right"},
      {.member = &P::chat_template, .name = "chat_template", .group = Group::data,
       .help = "none, tokenizer, a built-in name (chatml, zephyr, ...) or a file; unset: the tokenizer's own when rows "
               "are message lists",
       .null_means = "none"},
      {.member = &P::text_column, .name = "text_column", .group = Group::data, .initial = "text",
       .help = "Column with the text or the list of messages", .missing = "text_column must not be empty"},
      {.member = &P::apply_chat_template, .name = "apply_chat_template", .group = Group::data, .initial = true,
       .help = "Render message lists; --no-apply-chat-template equals --chat-template none"},
  };
}

std::vector<Field> run_fields() {
  return {
      {.member = &P::trainer, .name = "trainer", .group = Group::training, .initial = "default",
       .help = "Training method: sft on chats or texts, default on plain text", .choices = {"sft", "default"},
       .later = {"dpo", "orpo", "ppo", "reward", "distillation", "grpo"}, .synonyms = {{"generic", "default"}},
       .wrong_choice = "Invalid trainer '{}'. Valid options: default, distillation, dpo, generic, grpo, orpo, ppo, "
                       "reward, sft"},
      {.member = &P::attn_implementation, .name = "attn_implementation", .group = Group::training,
       .help = "Attention kernel; no effect, since the fastest exact one of the device is always used",
       .choices = {"eager", "sdpa", "flash_attention_2"}},
      {.member = &P::packing, .name = "packing", .group = Group::training,
       .help = "Pack short rows into full blocks; attention never crosses rows"},
      {.member = &P::log, .name = "log", .group = Group::training, .initial = "wandb",
       .help = "Tracker: wandb or none; in this build both write trainer_state.json only", .choices = {"wandb", "none"},
       .later = {"tensorboard"}, .null_means = "none", .also_called = {"report_to"}},
      {.member = &P::disable_gradient_checkpointing, .name = "disable_gradient_checkpointing", .group = Group::training,
       .initial = false, .help = "Keep activations instead of recomputing them"},
      {.member = &P::logging_steps, .name = "logging_steps", .group = Group::training, .initial = -1,
       .help = "Log every so many updates; -1: chosen from the run's length", .range = {.min = 1, .or_else = -1}},
      {.member = &P::eval_strategy, .name = "eval_strategy", .group = Group::training, .initial = "epoch",
       .help = "When to evaluate", .choices = {"epoch", "steps", "no"},
       .also_called = {"evaluation_strategy"}},
      {.member = &P::eval_steps, .name = "eval_steps", .group = Group::training, .initial = 500,
       .help = "Updates between evaluations with --eval-strategy steps", .range = {.min = 1}},
      {.member = &P::save_strategy, .name = "save_strategy", .group = Group::training, .initial = "epoch",
       .help = "When to write a checkpoint", .choices = {"epoch", "steps", "no"}},
      {.member = &P::save_steps, .name = "save_steps", .group = Group::training, .initial = 500,
       .help = "Updates between checkpoints with --save-strategy steps", .range = {.min = 1}},
      {.member = &P::save_total_limit, .name = "save_total_limit", .group = Group::training, .initial = 1,
       .help = "Checkpoints kept, newest first", .range = {.min = 1}},
  };
}

std::vector<Field> engine_fields() {
  return {
      {.member = &P::mixed_precision, .name = "mixed_precision", .group = Group::training,
       .help = "Compute type over fp32 master weights; unset: fp32", .choices = {"bf16", "fp16"}, .later = {"fp8"},
       .synonyms = {{"no", ""}, {"fp32", ""}},
       .wrong_choice = "Unknown mixed_precision mode: {}. Choose between ['no','fp8','fp16','bf16']."},
      {.member = &P::distributed_backend, .name = "distributed_backend", .group = Group::training,
       .help = "Engine on several ranks: ddp; unset: ddp", .choices = {"ddp"}, .later = {"deepspeed", "zero3"},
       .later_advice = "This build has no ZeRO-3 engine: use --distributed-backend ddp, or leave it out",
       .wrong_choice = "Unsupported distributed backend: '{}' (valid: ddp, deepspeed)"},
      {.member = &P::resume_from_checkpoint, .name = "resume_from_checkpoint", .group = Group::training,
       .help = "Checkpoint folder, or auto (also true, latest): the newest of the project",
       .synonyms = {{"true", "auto"}, {"latest", "auto"}, {"false", ""}}},
      {.member = &P::ddp_timeout, .name = "ddp_timeout", .group = Group::training, .initial = 7200,
       .help = "Seconds that a rank waits for the others in a collective", .range = {.min = 1}},
      {.member = &P::check_replicas, .name = "check_replicas", .group = Group::training, .initial = false,
       .help = "Compare a checksum of the weights over all ranks after every update"},
      {.member = &P::deterministic, .name = "deterministic", .group = Group::training, .initial = false,
       .help = "Sum in rank order: equal bits at equal rank count (not supported yet)"},
  };
}

std::vector<Field> hyperparameter_fields() {
  return {
      {.member = &P::lr, .name = "lr", .group = Group::hyperparameters, .initial = 3e-5, .help = "Peak learning rate",
       .range = {.min = 0}, .also_called = {"learning_rate"}},
      {.member = &P::epochs, .name = "epochs", .group = Group::hyperparameters, .initial = 1,
       .help = "Passes over the data", .range = {.min = 1}, .also_called = {"num_epochs", "num_train_epochs"}},
      {.member = &P::batch_size, .name = "batch_size", .group = Group::hyperparameters, .initial = 2,
       .help = "Rows (or packs) per rank and micro-step", .range = {.min = 1},
       .also_called = {"per_device_train_batch_size", "train_batch_size", "micro_batch_size"}},
      {.member = &P::warmup_ratio, .name = "warmup_ratio", .group = Group::hyperparameters, .initial = 0.1,
       .help = "Part of all updates in which the rate rises from 0", .range = {.min = 0, .max = 1},
       .also_called = {"warmup_steps", "warmup"}},
      {.member = &P::gradient_accumulation, .name = "gradient_accumulation", .group = Group::hyperparameters,
       .initial = 4, .help = "Micro-steps per update", .range = {.min = 1}},
      {.member = &P::optimizer, .name = "optimizer", .group = Group::hyperparameters, .initial = "adamw_torch",
       .help = "Optimizer", .choices = {"adamw_torch", "adamw_torch_fused", "sgd"},
       .later = {"adafactor", "adamw_hf", "adamw_8bit", "adamw_bnb_8bit", "paged_adamw_8bit", "paged_adamw_32bit",
                 "lion_32bit", "lion_8bit", "rmsprop", "adagrad"},
       .also_called = {"optim"}},
      {.member = &P::scheduler, .name = "scheduler", .group = Group::hyperparameters, .initial = "linear",
       .help = "Course of the learning rate", .choices = {"linear", "cosine", "constant", "constant_with_warmup"},
       .later = {"cosine_with_restarts", "polynomial", "inverse_sqrt", "reduce_lr_on_plateau", "cosine_with_min_lr",
                 "warmup_stable_decay"},
       .also_called = {"lr_scheduler", "lr_scheduler_type"}},
      {.member = &P::weight_decay, .name = "weight_decay", .group = Group::hyperparameters, .initial = 0.0,
       .help = "Decoupled weight decay", .range = {.min = 0}},
      {.member = &P::max_grad_norm, .name = "max_grad_norm", .group = Group::hyperparameters, .initial = 1.0,
       .help = "Clip the gradient's norm to this; 0: no clipping", .range = {.min = 0}, .also_called = {"clip_grad"}},
      {.member = &P::seed, .name = "seed", .group = Group::hyperparameters, .initial = 42,
       .help = "Seed of data order, adapters and dropout", .range = {.min = 0}},
      {.member = &P::response_only_loss, .name = "response_only_loss", .group = Group::sft, .initial = true,
       .help = "Train on the assistant's turns only", .trainers = "default, sft"},
  };
}

std::vector<Field> peft_fields() {
  return {
      {.member = &P::peft, .name = "peft", .group = Group::peft, .initial = false,
       .help = "Train LoRA adapters instead of all weights", .also_called = {"lora", "use_lora", "use_peft"}},
      {.member = &P::merge_adapter, .name = "merge_adapter", .group = Group::peft, .initial = true,
       .help = "Write the merged model into the project folder; the adapter is kept in adapter/"},
      {.member = &P::quantization, .name = "quantization", .group = Group::peft,
       .help = "Quantized base: int4 or int8 (not supported yet)", .choices = {"int4", "int8"}},
      {.member = &P::target_modules, .name = "target_modules", .group = Group::peft, .initial = "all-linear",
       .help = "LoRA targets: all-linear, a comma list, or a regular expression",
       .null_means = "all-linear", .missing = "target_modules must not be empty",
       .also_called = {"lora_target_modules", "lora_target"}, .list = true},
      {.member = &P::lora_r, .name = "lora_r", .group = Group::peft, .initial = 16, .help = "LoRA rank",
       .range = {.min = 1}, .also_called = {"lora_rank"}},
      {.member = &P::lora_alpha, .name = "lora_alpha", .group = Group::peft, .initial = 32,
       .help = "LoRA alpha; the adapter counts alpha / r", .range = {.min = 1}},
      {.member = &P::lora_dropout, .name = "lora_dropout", .group = Group::peft, .initial = 0.05,
       .help = "Dropout in front of the adapter", .range = {.min = 0, .max = 1, .below_max = true}},
      {.member = &P::merge_dtype, .name = "merge_dtype", .group = Group::peft,
       .help = "Type of the merged model; unset: the training type", .choices = {"fp32", "bf16", "fp16"}},
  };
}

std::vector<Field> outer_fields() {
  return {
      {.member = &P::nproc_per_node, .name = "nproc_per_node", .group = Group::launcher,
       .help = "Ranks on this machine; unset: one per visible GPU, one on CPU", .range = {.min = 1, .max = 1024},
       .also_called = {"num_processes"}},
      {.member = &P::device, .name = "device", .group = Group::launcher, .initial = "auto",
       .help = "auto: GPUs when there are any", .choices = {"auto", "cpu", "cuda"}},
      {.member = &P::push_to_hub, .name = "push_to_hub", .group = Group::hub, .initial = false,
       .help = "Upload the result (not supported yet)"},
      {.member = &P::username, .name = "username", .group = Group::hub, .help = "Hub user name",
       .environment = "HF_USERNAME"},
      {.member = &P::token, .name = "token", .group = Group::hub, .help = "Hub token", .environment = "HF_TOKEN",
       .also_called = {"hf_token", "hub_token"}, .secret = true},
      {.member = &P::repo_id, .name = "repo_id", .group = Group::hub, .help = "Hub repository",
       .also_called = {"hub_model_id"}},
      {.member = &P::wandb_token, .name = "wandb_token", .group = Group::hub, .help = "Weights & Biases key",
       .environment = "WANDB_API_KEY", .secret = true},
      {.member = &P::hub_private, .name = "hub_private", .group = Group::hub, .initial = true,
       .help = "Make the Hub repository private"},
  };
}

}  // namespace

const std::vector<Field>& field_table() {
  static const std::vector<Field> table = [] {
    std::vector<Field> all;
    for (auto* part : {basic_fields, data_fields, run_fields, engine_fields, hyperparameter_fields, peft_fields,
                       outer_fields}) {
      for (Field& field : part()) all.push_back(std::move(field));
    }
    return all;
  }();
  return table;
}

}  // namespace aitraining::config
