#include <charconv>
#include <cmath>
#include <numbers>

#include "aitraining/core/error.h"
#include "aitraining/format/strict_json.h"
#include "gguf_source.h"

namespace aitraining::model {
namespace {

using Json = nlohmann::ordered_json;
using format::GgufFile;
constexpr const char* kRopeFreqs = "rope_freqs.weight";

// Metadata are fp32: the shortest decimal that means the same number ("1e-05" instead of 9.999999747378752e-06).
double shortest(double value) {
  char text[64];
  const auto narrow = static_cast<float>(value);
  if (static_cast<double>(narrow) != value) return value;
  const auto end = std::to_chars(text, text + sizeof text, narrow).ptr;
  std::from_chars(text, end, value);
  return value;
}

// Llama 3's scaling comes as a tensor of divisors, one per frequency. The three values below are those of every
// published Llama 3.1 to 3.3; the factor is the largest divisor.
Json llama3_parameters(const GgufFile& file, double theta, int64_t head_dim, double factor) {
  Json rope = {{"factor", shortest(factor)},
               {"high_freq_factor", 4.0},
               {"low_freq_factor", 1.0},
               {"original_max_position_embeddings", 8192},
               {"rope_theta", theta},
               {"rope_type", "llama3"}};
  const format::TensorInfo& info = file.tensors().at(kRopeFreqs);
  std::vector<float> stored(static_cast<size_t>(head_dim / 2));
  file.read_f32(info, 0, head_dim / 2, stored.data());
  for (int64_t i = 0; i < head_dim / 2; ++i) {
    const double frequency = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
    const double turns = 8192.0 / (2 * std::numbers::pi / frequency);
    const double smooth = (turns - 1.0) / (4.0 - 1.0);
    const double expected = turns > 4 ? 1 : turns < 1 ? factor : 1 / ((1 - smooth) / factor + smooth);
    if (!(std::abs(stored[static_cast<size_t>(i)] - expected) <= 1e-4 * expected))
      throw UserError("{}: {} holds frequency factors that are not Llama 3's (element {} is {}, {} was expected); this "
                      "rotary scaling is not supported", file.describe(), kRopeFreqs, i, stored[static_cast<size_t>(i)], expected);
  }
  return rope;
}

Json rope_parameters(const GgufFile& file, int64_t head_dim) {
  const double theta = file.has("llama.rope.freq_base") ? shortest(file.real("llama.rope.freq_base")) : 10000.0;
  std::string type = file.has("llama.rope.scaling.type") ? file.text("llama.rope.scaling.type") : "none";
  double factor = 1;
  for (const char* key : {"llama.rope.scale_linear", "llama.rope.scaling.factor"})
    if (file.has(key)) factor = shortest(file.real(key));
  // Old files give the linear factor alone.
  if (!file.has("llama.rope.scaling.type") && factor != 1) type = "linear";
  if (type != "none" && type != "linear")
    throw UserError("{}: llama.rope.scaling.type is \"{}\"; supported are none and linear", file.describe(),
                    format::printable(type));
  const auto freqs = file.tensors().find(kRopeFreqs);
  if (freqs != file.tensors().end()) {
    if (type == "linear" || freqs->second.shape != std::vector<int64_t>{head_dim / 2})
      throw UserError("{}: {} of {} elements (heads of {}, rope scaling {}) is not supported", file.describe(), kRopeFreqs,
                      freqs->second.elements(), head_dim, type);
    std::vector<float> divisors(static_cast<size_t>(head_dim / 2));
    file.read_f32(freqs->second, 0, head_dim / 2, divisors.data());
    double largest = 1;
    for (const float divisor : divisors) largest = std::max<double>(largest, divisor);
    return llama3_parameters(file, theta, head_dim, largest);
  }
  if (type == "linear") return {{"factor", factor}, {"rope_theta", theta}, {"rope_type", "linear"}};
  return {{"rope_theta", theta}, {"rope_type", "default"}};
}

int64_t head_dim_of(const GgufFile& file, int64_t hidden, int64_t heads) {
  if (!file.has("llama.attention.key_length") && (heads <= 0 || hidden % heads != 0))
    throw UserError("{}: llama.attention.head_count {} does not divide llama.embedding_length {}", file.describe(), heads,
                    hidden);
  const int64_t head_dim =
      file.has("llama.attention.key_length") ? file.integer("llama.attention.key_length") : hidden / heads;
  for (const char* key : {"llama.rope.dimension_count", "llama.attention.value_length"})
    if (file.has(key) && file.integer(key) != head_dim)
      throw UserError("{}: {} is {} with heads of {}: this is not supported", file.describe(), key, file.integer(key),
                      head_dim);
  return head_dim;
}

// Rows of the embedding; the list of tokens may be shorter.
int64_t vocab_size_of(const GgufFile& file) {
  const auto found = file.tensors().find("token_embd.weight");
  if (found == file.tensors().end() || found->second.shape.size() != 2)
    throw UserError("{}: no tensor token_embd.weight of two dimensions", file.describe());
  const int64_t rows = found->second.shape[0];
  if (file.has("llama.vocab_size") && file.integer("llama.vocab_size") != rows)
    throw UserError("{}: llama.vocab_size is {}, token_embd.weight has {} rows", file.describe(),
                    file.integer("llama.vocab_size"), rows);
  return rows;
}

Json token_id(const GgufFile& file, const std::string& name) {
  const std::string key = "tokenizer.ggml." + name + "_token_id";
  return file.has(key) ? Json(file.integer(key)) : Json(nullptr);
}

void check_supported(const GgufFile& file) {
  const std::string architecture = file.text("general.architecture");
  if (architecture != "llama")
    throw UserError("{}: the architecture \"{}\" is not supported; of GGUF files llama is", file.describe(),
                    format::printable(architecture));
  if (file.has("llama.expert_count") && file.integer("llama.expert_count") > 0)
    throw UserError("{}: a mixture of {} experts is not supported", file.describe(), file.integer("llama.expert_count"));
}

}  // namespace

nlohmann::ordered_json gguf_config(const GgufFile& file) {
  check_supported(file);
  const int64_t hidden = file.integer("llama.embedding_length"), heads = file.integer("llama.attention.head_count");
  const int64_t head_dim = head_dim_of(file, hidden, heads);
  const auto has = [&](const char* tensor) { return file.tensors().contains(tensor); };
  return {
      {"architectures", Json::array({"LlamaForCausalLM"})},
      {"attention_bias", has("blk.0.attn_q.bias")},
      {"attention_dropout", 0.0},
      {"bos_token_id", token_id(file, "bos")},
      {"dtype", "float32"},
      {"eos_token_id", token_id(file, "eos")},
      {"head_dim", head_dim},
      {"hidden_act", "silu"},
      {"hidden_size", hidden},
      {"initializer_range", 0.02},
      {"intermediate_size", file.integer("llama.feed_forward_length")},
      {"max_position_embeddings", file.integer("llama.context_length")},
      {"mlp_bias", has("blk.0.ffn_gate.bias")},
      {"model_type", "llama"},
      {"num_attention_heads", heads},
      {"num_hidden_layers", file.integer("llama.block_count")},
      {"num_key_value_heads",
       file.has("llama.attention.head_count_kv") ? file.integer("llama.attention.head_count_kv") : heads},
      {"pad_token_id", token_id(file, "padding")},
      {"rms_norm_eps", shortest(file.real("llama.attention.layer_norm_rms_epsilon"))},
      {"rope_parameters", rope_parameters(file, head_dim)},
      {"tie_word_embeddings", !has("output.weight")},
      {"use_cache", true},
      {"vocab_size", vocab_size_of(file)},
  };
}

}  // namespace aitraining::model
