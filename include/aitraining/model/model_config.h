#pragma once
// A decoder model's shape as Hugging Face's config.json tells it, or GGUF metadata. No torch here.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "aitraining/format/tensor_store.h"

namespace aitraining::model {

enum class RopeKind { standard, linear, llama3 };

struct RopeConfig {
  RopeKind kind = RopeKind::standard;
  double theta = 10000.0;
  double factor = 1.0;
  double low_freq_factor = 1.0, high_freq_factor = 4.0;       // llama3
  int64_t original_max_position_embeddings = 8192;            // llama3
};

struct ModelConfig {
  std::string architecture;              // "LlamaForCausalLM"
  int64_t hidden_size = 0, intermediate_size = 0, num_layers = 0, num_heads = 0, num_kv_heads = 0, head_dim = 0;
  int64_t vocab_size = 0, max_position_embeddings = 0;
  double rms_norm_eps = 1e-6;
  RopeConfig rope;
  bool tie_word_embeddings = false, attention_bias = false, mlp_bias = false;
  std::string hidden_act = "silu";
  std::string stored_dtype;              // "float32", "bfloat16", ...; what config.json says, empty if nothing
  nlohmann::ordered_json raw;            // the config.json to be saved again (made up for GGUF), unknown keys kept
};

// Reads both spellings (rope_parameters / rope_theta + rope_scaling, dtype / torch_dtype). UserError naming file, key,
// value for anything missing, of the wrong type, or not supported (architecture, activation, rope type, auto_map code).
ModelConfig parse_config(const nlohmann::ordered_json& config, const std::string& origin);

// A pretrained model on disk: what `--model` names.
struct ModelSource {
  std::filesystem::path path;                          // as given, absolute
  ModelConfig config;
  std::shared_ptr<format::TensorStore> tensors;        // Hugging Face names ("model.layers.0.self_attn.q_proj.weight")
  bool quantized = false;                              // some tensors were dequantised (GGUF)
  std::optional<nlohmann::ordered_json> generation_config;
  std::vector<std::string> notes;                      // lines for the summary ("dequantised from Q4_1")
};

// Folder in Hugging Face form, folder with one .gguf, or a .gguf file. Every tensor that the architecture needs is
// checked to be there with the right shape (UserError listing the missing ones); extra tensors give a note.
// headers: nothing of a tensor is read, not even to compare a tied head that is stored twice.
enum class ReadDepth { headers, values };
ModelSource open_model(const std::filesystem::path& path, ReadDepth depth = ReadDepth::values);

// Names and shapes that the architecture has, in saving order. Tied: no lm_head.weight.
std::vector<std::pair<std::string, std::vector<int64_t>>> expected_tensors(const ModelConfig& config);

}  // namespace aitraining::model
