#pragma once
// checkpoint-N folders. A folder of that name is complete, always: it is written aside, every file synced, the manifest
// (sizes and hashes) last, then renamed. safetensors and JSON only: nothing that runs code when read.
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "aitraining/checkpoint/export.h"

namespace aitraining::checkpoint {

// What a run needs to go on, besides weights and optimizer state.
struct RunState {
  int64_t updates = 0, input_tokens_seen = 0, updates_per_epoch = 0;
  double loss_sum = 0, loss_weight = 0;
  double epoch = 0;
  std::string optimizer, precision;
  std::string data;                       // rows and tokens of the training split
  std::string base;                       // fingerprint of the base model's weights (adapter runs)
  double lora_alpha = 0;
  nlohmann::ordered_json batch;           // batch size, accumulation, ranks, seed: to warn when they change
  nlohmann::ordered_json trainer_state;   // Hugging Face's trainer_state.json
};

struct SaveRequest {
  std::filesystem::path project;
  RunState state;
  std::string base_model;                 // for adapter_config.json
  format::DType dtype = format::DType::f32;
  int64_t total_limit = 1;                // complete checkpoints to keep besides the best one; 0: all
  std::optional<std::string> best;        // folder name that must stay
};

// Collective. Older checkpoints go only after the new one is whole. Returns its folder. NumericError when a weight is not
// finite: such a state is never saved, so none is ever resumed.
std::filesystem::path save_checkpoint(const SavingRanks& ranks, const SaveRequest& request, const ModelParts& parts);

// Complete checkpoints of a project, oldest number first. Folders that are not whole are skipped; `notes` says why.
std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& project,
                                                    std::vector<std::string>* notes = nullptr);

// `--resume-from-checkpoint`: auto, true or latest -> the newest complete one, or none (a note says "Starting fresh.");
// a path -> that one; UserError when it is missing or broken, naming the bad file.
std::optional<std::filesystem::path> resolve_resume(const std::string& choice, const std::filesystem::path& project,
                                                    std::vector<std::string>& notes);

class Checkpoint {
 public:
  // Verifies the manifest. UserError naming the first file that is missing, cut or changed.
  explicit Checkpoint(std::filesystem::path folder);
  const RunState& state() const { return state_; }
  const std::filesystem::path& folder() const { return folder_; }
  bool has_adapter() const { return adapter_; }
  // UserError when it holds weights that this run has no place for: they would be lost without a word.
  void check_all_used(const ops::Chain& chain) const;
  // fp32 masters of the trained parameters (or the whole model of a full run).
  ops::ParameterReader weights() const;
  ops::ParameterReader exp_avg() const;
  ops::ParameterReader exp_avg_sq() const;

 private:
  ops::ParameterReader reader(const std::string& prefix) const;
  std::filesystem::path folder_;
  RunState state_;
  bool adapter_ = false;
  std::shared_ptr<format::TensorStore> weights_, optimizer_;
};

}  // namespace aitraining::checkpoint
