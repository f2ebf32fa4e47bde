#pragma once
// A decoder-only language model as a chain of units, made from its description (ModelConfig).
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aitraining/model/model_config.h"
#include "aitraining/ops/attention.h"
#include "aitraining/ops/head.h"
#include "aitraining/ops/unit.h"

namespace aitraining::model {

struct LoraOptions {
  int64_t r = 16;
  double alpha = 32, dropout = 0.05;
  // "all-linear" (every linear layer but the output head), a list "q_proj, v_proj" (brackets and quotes allowed), or a
  // regular expression that matches whole module names.
  std::string target_modules = "all-linear";
};

// A linear layer that got an adapter.
struct AdaptedModule {
  std::string name;      // "model.layers.0.self_attn.q_proj"
  int64_t in = 0, out = 0;
};

class Decoder {
 public:
  // UserError when target_modules names no layer, with the names that there are.
  Decoder(ModelConfig config, std::optional<LoraOptions> lora);
  ~Decoder();

  const ModelConfig& config() const { return config_; }
  ops::Chain& chain() { return chain_; }
  const std::vector<AdaptedModule>& adapted_modules() const { return adapted_; }
  const std::vector<std::string>& target_names() const { return target_names_; }  // "q_proj", ... in model order
  const std::optional<LoraOptions>& lora() const { return lora_; }
  int64_t parameters() const;            // base model, tied weights once
  int64_t trainable_parameters() const;
  const ops::Head& head() const;

  // Fills rope_cos and rope_sin from batch.positions, on the batch's device.
  void add_rope(ops::Batch& batch) const;

 private:
  struct Builder;
  ModelConfig config_;
  std::optional<LoraOptions> lora_;
  ops::Chain chain_;
  std::vector<AdaptedModule> adapted_;
  std::vector<std::string> target_names_;
  mutable at::Tensor cos_table_, sin_table_;
};

// Name in PEFT's files: "base_model.model.<module>.lora_A.weight".
std::string lora_name(const std::string& module, char matrix);

// Reads the base model's parameters. A parameter with more rows than the stored tensor (grown vocabulary) gets the mean
// of the stored rows in the new ones. Releases file pages as it goes.
ops::ParameterReader base_reader(const ModelSource& source);
// Fresh adapters: A ~ U(-1/sqrt(in), 1/sqrt(in)) (Kaiming with a = sqrt(5)) from `seed` and the name alone, B = 0.
ops::ParameterReader adapter_initialiser(uint64_t seed);

}  // namespace aitraining::model
