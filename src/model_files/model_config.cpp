#include "aitraining/model/model_config.h"

#include "aitraining/core/error.h"
#include "config_reader.h"
#include "rope_config.h"

namespace aitraining::model {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kLlama = "LlamaForCausalLM";
constexpr const char* kMistral = "MistralForCausalLM";
constexpr const char* kSupported = "supported are LlamaForCausalLM and MistralForCausalLM (without a sliding window)";
// More layers than any model has; keeps a false number from filling the memory with names.
constexpr int64_t kMaxLayers = 4096;

std::string architecture_of(const ConfigReader& config) {
  std::string name;
  if (const Json* list = config.find("architectures")) {
    if (!list->is_array() || list->empty() || !list->front().is_string())
      config.refuse("architectures", "a list of names is needed");
    name = list->front().get<std::string>();
  } else {
    const std::string type = config.text("model_type", "");
    if (type == "llama") name = kLlama;
    else if (type == "mistral") name = kMistral;
  }
  if (name == kLlama || name == kMistral) return name;
  const std::string key = config.has("architectures") ? "architectures" : "model_type";
  if (config.has("auto_map"))
    config.refuse(key, std::string("this architecture is not supported, and the model's own code (auto_map) is never run; ") +
                           kSupported);
  config.refuse(key, std::string("this architecture is not supported; ") + kSupported);
}

void refuse_quantized(const ConfigReader& config) {
  if (!config.has("quantization_config")) return;
  std::string method = "an unnamed method";
  const Json& quantization = *config.find("quantization_config");
  if (quantization.is_object() && quantization.contains("quant_method") && quantization["quant_method"].is_string())
    method = quantization["quant_method"].get<std::string>();
  throw UserError("{}: the weights are quantised ({}, key \"quantization_config\"), which cannot be trained on; name the "
                  "model in its original precision, or a GGUF file", config.origin(), method);
}

// Mistral computes what Llama does as long as every layer sees all positions before it; its defaults differ.
void check_mistral(const ConfigReader& config) {
  const auto& json = config.json();
  if (!json.contains("sliding_window") || config.has("sliding_window"))
    config.refuse("sliding_window", "attention in a sliding window is not supported (missing means 4096); only null is");
  if (const Json* types = config.find("layer_types"))
    for (const Json& type : *types)
      if (type != "full_attention") config.refuse("layer_types", "only full_attention is supported");
  for (const char* key : {"attention_bias", "mlp_bias"})
    if (config.flag(key, false)) config.refuse(key, "MistralForCausalLM has no bias");
}

void parse_heads(const ConfigReader& config, ModelConfig& out) {
  out.num_heads = config.size("num_attention_heads");
  const bool default_of_mistral = out.architecture == kMistral && !config.json().contains("num_key_value_heads");
  out.num_kv_heads = config.size("num_key_value_heads", default_of_mistral ? 8 : out.num_heads);
  if (out.num_heads % out.num_kv_heads != 0)
    config.refuse("num_key_value_heads", fmt::format("it must divide num_attention_heads ({})", out.num_heads));
  if (!config.has("head_dim") && out.hidden_size % out.num_heads != 0)
    config.refuse("num_attention_heads", fmt::format("it must divide hidden_size ({})", out.hidden_size));
  out.head_dim = config.size("head_dim", out.hidden_size / out.num_heads);
  if (out.head_dim % 2 != 0)
    throw UserError("{}: heads of {} elements: rotary embeddings need an even number", config.origin(), out.head_dim);
  if (out.num_heads > std::numeric_limits<int32_t>::max() / out.head_dim)
    config.refuse("num_attention_heads", fmt::format("too many for heads of {}", out.head_dim));
}

}  // namespace

ModelConfig parse_config(const Json& json, const std::string& origin) {
  if (!json.is_object()) throw UserError("{}: not a JSON object", origin);
  const ConfigReader config(json, origin);
  ModelConfig out;
  out.architecture = architecture_of(config);
  refuse_quantized(config);
  if (out.architecture == kMistral) check_mistral(config);
  out.hidden_size = config.size("hidden_size");
  out.intermediate_size = config.size("intermediate_size");
  out.num_layers = config.size("num_hidden_layers");
  if (out.num_layers > kMaxLayers) config.refuse("num_hidden_layers", fmt::format("{} at most are allowed", kMaxLayers));
  parse_heads(config, out);
  out.vocab_size = config.size("vocab_size");
  out.max_position_embeddings = config.size("max_position_embeddings");
  out.rms_norm_eps = config.positive("rms_norm_eps", 1e-6);
  out.rope = parse_rope(config);
  out.tie_word_embeddings = config.flag("tie_word_embeddings", false);
  out.attention_bias = config.flag("attention_bias", false);
  out.mlp_bias = config.flag("mlp_bias", false);
  out.hidden_act = config.text("hidden_act", "silu");
  if (out.hidden_act == "swish") out.hidden_act = "silu";  // two names of one function
  if (out.hidden_act != "silu") config.refuse("hidden_act", "only silu is supported");
  out.stored_dtype = config.text("dtype", config.text("torch_dtype", ""));
  out.raw = json;
  return out;
}

std::vector<std::pair<std::string, std::vector<int64_t>>> expected_tensors(const ModelConfig& c) {
  std::vector<std::pair<std::string, std::vector<int64_t>>> out;
  const auto linear = [&](const std::string& name, int64_t rows, int64_t columns, bool bias) {
    out.push_back({name + ".weight", {rows, columns}});
    if (bias) out.push_back({name + ".bias", {rows}});
  };
  const int64_t query = c.num_heads * c.head_dim, key = c.num_kv_heads * c.head_dim;
  out.push_back({"model.embed_tokens.weight", {c.vocab_size, c.hidden_size}});
  for (int64_t i = 0; i < c.num_layers; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    linear(layer + "self_attn.q_proj", query, c.hidden_size, c.attention_bias);
    linear(layer + "self_attn.k_proj", key, c.hidden_size, c.attention_bias);
    linear(layer + "self_attn.v_proj", key, c.hidden_size, c.attention_bias);
    linear(layer + "self_attn.o_proj", c.hidden_size, query, c.attention_bias);
    linear(layer + "mlp.gate_proj", c.intermediate_size, c.hidden_size, c.mlp_bias);
    linear(layer + "mlp.up_proj", c.intermediate_size, c.hidden_size, c.mlp_bias);
    linear(layer + "mlp.down_proj", c.hidden_size, c.intermediate_size, c.mlp_bias);
    out.push_back({layer + "input_layernorm.weight", {c.hidden_size}});
    out.push_back({layer + "post_attention_layernorm.weight", {c.hidden_size}});
  }
  out.push_back({"model.norm.weight", {c.hidden_size}});
  if (!c.tie_word_embeddings) out.push_back({"lm_head.weight", {c.vocab_size, c.hidden_size}});
  return out;
}

}  // namespace aitraining::model
