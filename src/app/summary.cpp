#include <fmt/format.h>

#include "aitraining/core/strings.h"
#include "session.h"

namespace aitraining::app {

std::string precision_line(const config::TrainingParams& params, c10::Device device) {
  if (params.mixed_precision != "bf16") return "fp32 (--mixed-precision is unset)";
  if (device.is_cuda()) return "bf16 compute over fp32 master weights";
  const bool fast = launch::probe_devices().fast_bf16;
  return fmt::format("bf16 compute over fp32 master weights ({})",
                     fast ? "this CPU has bf16 instructions" : "slow: this CPU has no bf16 instructions");
}

std::string split_line(const data::PreparedSplit& split) {
  const auto& r = split.report;
  const auto skipped = static_cast<int64_t>(r.rows_without_trained_tokens.size());
  return fmt::format("{} rows in, {} used, {} skipped, {} cut; {} tokens, {} trained ({})", human_count(r.rows_read),
                     human_count(r.rows_used), human_count(skipped), human_count(r.rows_truncated),
                     human_count(split.rows.total_tokens()), human_count(split.rows.total_trained()), r.file);
}

std::string engine_line(const engine::EngineOptions& options, int ranks) {
  const std::string order = options.deterministic ? ", sums in rank order" : "";
  switch (options.sharding) {
    case engine::Sharding::gradients: return "zero2 (parameters whole; gradients and optimizer state sharded)" + order;
    case engine::Sharding::parameters: return "zero3 (parameters, gradients and optimizer state sharded)" + order;
    case engine::Sharding::none: break;
  }
  return ranks == 1 ? "single process" : "ddp (replicated, gradients all-reduced per unit)" + order;
}

// The configuration in effect, in the words of DeepSpeed's own file.
std::string Session::sharding_line() const {
  const auto& options = engine_->options();
  const auto memory = engine_->memory();
  const bool zero3 = options.sharding == engine::Sharding::parameters;
  return fmt::format(
      "stage {}, offload_optimizer {}, offload_param {}, gradient_accumulation_steps {}, gradient_clipping {}, prefetch "
      "{}, resident units {}; per rank {} weights, {} gradients, {} optimizer, up to {} buffers",
      zero3 ? 3 : 2, params_.offload_optimizer.value_or("none"), params_.offload_param.value_or("none"),
      params_.gradient_accumulation, params_.max_grad_norm > 0 ? fmt::format("{}", params_.max_grad_norm) : "off",
      zero3 ? "1 unit" : "none", options.resident_units, human_bytes(memory.weights), human_bytes(memory.gradients),
      human_bytes(memory.optimizer), human_bytes(memory.buffers));
}

report::RunSummary Session::summary(const train::Trainer& trainer) const {
  report::RunSummary s;
  auto line = [&](const char* label, std::string value) { s.lines.emplace_back(label, std::move(value)); };
  const int64_t all = decoder_->parameters(), trained = decoder_->trainable_parameters();
  line("model", fmt::format("{} ({}, {} parameters)", params_.model, source_->config.architecture, human_count(all)));
  line("trained", fmt::format("{} parameters ({:.2f} %){}", human_count(trained),
                              100.0 * static_cast<double>(trained) / static_cast<double>(all),
                              params_.peft ? fmt::format(", LoRA r {} alpha {} dropout {} on {}", params_.lora_r,
                                                         params_.lora_alpha, params_.lora_dropout,
                                                         join(decoder_->target_names(), ", "))
                                           : std::string(", full fine-tuning")));
  line("training data", split_line(*train_));
  if (valid_) line("validation data", split_line(*valid_));
  if (params_.packing.value_or(false)) line("packing", fmt::format("packs of at most {} tokens", limit_.tokens));
  line("ranks", fmt::format("{} on {}, {} threads each", rank_.world_size, device_.is_cuda() ? "cuda" : "cpu",
                            at::get_num_threads()));
  line("engine", engine_line(engine_->options(), group_->size()));
  if (engine_->options().sharding != engine::Sharding::none) line("zero", sharding_line());
  line("precision", precision_line(params_, device_));
  line("batch", fmt::format("{} rows x {} accumulation x {} ranks = {} rows per update", params_.batch_size,
                            params_.gradient_accumulation, rank_.world_size,
                            params_.batch_size * params_.gradient_accumulation * rank_.world_size));
  line("updates", fmt::format("{} in {} epoch(s); {} schedule, peak rate {}", trainer.total_updates(), params_.epochs,
                              params_.scheduler, params_.lr));
  line("optimizer", fmt::format("{}, weight decay {}, clipping {}", params_.optimizer, params_.weight_decay,
                                params_.max_grad_norm > 0 ? fmt::format("{}", params_.max_grad_norm) : "off"));
  line("checkpointing", params_.disable_gradient_checkpointing ? "activations kept" : "activations recomputed");
  line("project", project_.string());
  s.total_updates = trainer.total_updates();
  s.num_epochs = params_.epochs;
  s.train_rows = train_->rows.size();
  s.batch_size = params_.batch_size;
  s.logging_steps = trainer_options(params_, rank_.world_size, train_->report.rows_read,
                                    valid_ ? valid_->report.rows_read : 0).logging_steps;
  s.save_steps = params_.save_steps;
  s.project_path = project_.string();
  return s;
}

report::ModelCard Session::model_card(bool merged) const {
  report::ModelCard card;
  card.title = project_.filename();
  card.base_model = params_.model;
  card.trainer = params_.trainer;
  card.dataset = "local";
  card.peft = params_.peft;
  card.merged = merged;
  auto row = [&](const char* label, std::string value) { card.table.emplace_back(label, std::move(value)); };
  row("Base Model", params_.model);
  row("Trainer", params_.trainer);
  row("Dataset", "local");
  row("Epochs", fmt::format("{}", params_.epochs));
  row("Learning Rate", fmt::format("{}", params_.lr));
  row("Batch Size", fmt::format("{}", params_.batch_size));
  row("Block Size", fmt::format("{}", limit_.tokens));
  row("Gradient Accumulation", fmt::format("{}", params_.gradient_accumulation));
  if (params_.peft) {
    row("LoRA Rank", fmt::format("{}", params_.lora_r));
    row("LoRA Alpha", fmt::format("{}", params_.lora_alpha));
  }
  if (params_.chat_template) row("Chat Template", *params_.chat_template);
  card.eval_loss = last_eval_;
  card.version = AITRAINING_VERSION;
  return card;
}

}  // namespace aitraining::app
