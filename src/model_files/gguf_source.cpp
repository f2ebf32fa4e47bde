#include "gguf_source.h"

#include <set>

#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"
#include "named_store.h"
#include "tensor_check.h"

namespace aitraining::model {
namespace {

using Json = nlohmann::ordered_json;

bool is_plain(format::DType dtype) {
  using format::DType;
  return dtype == DType::f64 || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

// "dequantised from Q4_1 (210 tensors), Q8_0 (1 tensor)"; empty when nothing is quantised.
std::string quantization_note(const format::TensorStore& store) {
  std::map<std::string, int> counts;
  for (const auto& [name, info] : store.tensors())
    if (!is_plain(info.dtype)) ++counts[dtype_name(info.dtype)];
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts)
    parts.push_back(fmt::format("{} ({} tensor{})", name, count, count == 1 ? "" : "s"));
  return parts.empty() ? "" : "dequantised from " + join(parts, ", ");
}

int64_t rotary_heads(const ModelConfig& config, const std::string& name) {
  if (name.find(".q_proj.") != std::string::npos) return config.num_heads;
  if (name.find(".k_proj.") != std::string::npos) return config.num_kv_heads;
  return 0;
}

Json generation_config(const Json& config) {
  Json out = {{"_from_model_config", true}};
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"})
    if (!config[key].is_null()) out[key] = config[key];
  return out;
}

}  // namespace

std::string gguf_tensor_name(const std::string& name) {
  static const std::map<std::string, std::string> kModules = {
      {"model.embed_tokens", "token_embd"}, {"model.norm", "output_norm"},   {"lm_head", "output"},
      {"self_attn.q_proj", "attn_q"},       {"self_attn.k_proj", "attn_k"},  {"self_attn.v_proj", "attn_v"},
      {"self_attn.o_proj", "attn_output"},  {"mlp.gate_proj", "ffn_gate"},   {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"},        {"input_layernorm", "attn_norm"}, {"post_attention_layernorm", "ffn_norm"}};
  constexpr std::string_view kLayers = "model.layers.";
  std::string module = name, prefix;
  if (name.starts_with(kLayers)) {
    const size_t end = name.find('.', kLayers.size());
    prefix = "blk." + name.substr(kLayers.size(), end - kLayers.size()) + ".";
    module = name.substr(end + 1);
  }
  const size_t dot = module.rfind('.');
  const auto found = kModules.find(module.substr(0, dot));
  AIT_CHECK(found != kModules.end(), "{} has no name in GGUF", name);
  return prefix + found->second + module.substr(dot);
}

ModelSource open_gguf_model(const std::filesystem::path& path) {
  const std::shared_ptr<format::GgufFile> file = format::GgufFile::open(path);
  ModelSource source;
  source.path = path;
  source.config = parse_config(gguf_config(*file), path.string() + " (metadata)");
  const auto missing = missing_tensors(source.config, *file, gguf_tensor_name);
  if (!missing.empty()) throw UserError("{}: tensors are missing: {}", file->describe(), name_list(missing));
  check_shapes(source.config, *file, gguf_tensor_name);
  auto store = std::make_shared<NamedStore>(file);
  std::set<std::string> used = {"rope_freqs.weight"};
  for (const auto& [name, shape] : expected_tensors(source.config)) {
    store->add(name, gguf_tensor_name(name), rotary_heads(source.config, name));
    used.insert(gguf_tensor_name(name));
  }
  const std::string note = quantization_note(*store);
  source.quantized = !note.empty();
  if (source.quantized) source.notes.push_back(note);
  const auto unused = unused_tensors(*file, used);
  if (!unused.empty()) source.notes.push_back(fmt::format("tensors that the model does not use: {}", name_list(unused)));
  source.generation_config = generation_config(source.config.raw);
  source.tensors = std::move(store);
  return source;
}

}  // namespace aitraining::model
