#include "model_files/gguf_source.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numbers>
#include <set>

#include "support/expect_error.h"
#include "unit/model/tiny_model.h"

namespace aitraining::model {
namespace {

using Json = nlohmann::ordered_json;
using test::counting;
using test::expect_user_error;
using test::GgufBuilder;
using test::raw_all;
using test::TempDir;

struct Options {
  Json config = test::tiny_config();
  std::string architecture = "llama";
  std::set<std::string> leave_out;
  std::function<void(GgufBuilder&)> more = [](GgufBuilder&) {};
};

std::string gguf_bytes(const Options& options) {
  GgufBuilder file;
  const Json& c = options.config;
  const auto u32 = [&](const char* key, const char* from) {
    if (!options.leave_out.contains(key)) file.u32(key, c[from].get<uint32_t>());
  };
  file.string("general.architecture", options.architecture);
  u32("llama.block_count", "num_hidden_layers");
  u32("llama.context_length", "max_position_embeddings");
  u32("llama.embedding_length", "hidden_size");
  u32("llama.feed_forward_length", "intermediate_size");
  u32("llama.attention.head_count", "num_attention_heads");
  u32("llama.attention.head_count_kv", "num_key_value_heads");
  file.f32("llama.attention.layer_norm_rms_epsilon", 1e-5f).f32("llama.rope.freq_base", 100000.0f);
  file.u32("tokenizer.ggml.bos_token_id", 1).u32("tokenizer.ggml.eos_token_id", 2);
  for (const auto& [name, shape] : test::tiny_shapes(c)) {
    if (options.leave_out.contains(gguf_tensor_name(name))) continue;
    std::vector<uint64_t> dims(shape.rbegin(), shape.rend());
    file.tensor(gguf_tensor_name(name), dims, 0, raw_all(counting(shape)));
  }
  options.more(file);
  return file.bytes();
}

ModelSource open(const TempDir& folder, const Options& options = {}) {
  folder.write("model.gguf", gguf_bytes(options));
  return open_model(folder.path());
}

std::vector<float> floats(const ModelSource& source, const std::string& name) {
  const format::TensorInfo& info = source.tensors->tensors().at(name);
  std::vector<float> out(static_cast<size_t>(info.elements()));
  source.tensors->read_f32(info, 0, info.elements(), out.data());
  return out;
}

TEST(GgufModel, ConfigAsTransformersWritesIt) {
  const TempDir folder;
  const ModelSource source = open(folder);
  const Json right = Json::parse(R"({
    "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 1,
    "dtype": "float32", "eos_token_id": 2, "head_dim": 4, "hidden_act": "silu", "hidden_size": 8,
    "initializer_range": 0.02, "intermediate_size": 12, "max_position_embeddings": 32, "mlp_bias": false,
    "model_type": "llama", "num_attention_heads": 2, "num_hidden_layers": 1, "num_key_value_heads": 1,
    "pad_token_id": null, "rms_norm_eps": 1e-05, "rope_parameters": {"rope_theta": 100000.0, "rope_type": "default"},
    "tie_word_embeddings": false, "use_cache": true, "vocab_size": 10})");
  EXPECT_EQ(source.config.raw.dump(), right.dump());
  EXPECT_EQ(source.config.rope.theta, 100000.0);
  EXPECT_FALSE(source.quantized);
  EXPECT_EQ(source.generation_config->dump(), R"({"_from_model_config":true,"bos_token_id":1,"eos_token_id":2})");
  EXPECT_EQ(source.tensors->tensors().size(), 12u);
  EXPECT_TRUE(source.notes.empty());
}

// Heads of 4 rows: stored as (pair, half), given out as (half, pair), so rows 0 1 2 3 come from 0 2 1 3.
TEST(GgufModel, RotaryRowsAreUnpermuted) {
  const TempDir folder;
  const ModelSource source = open(folder);
  const auto query = floats(source, "model.layers.0.self_attn.q_proj.weight");
  const auto key = floats(source, "model.layers.0.self_attn.k_proj.weight");
  const auto value = floats(source, "model.layers.0.self_attn.v_proj.weight");
  const int rows[] = {0, 2, 1, 3, 4, 6, 5, 7};
  for (int row = 0; row < 8; ++row)
    for (int column = 0; column < 8; ++column) EXPECT_EQ(query[row * 8 + column], rows[row] * 8 + column);
  for (int row = 0; row < 4; ++row)
    for (int column = 0; column < 8; ++column) {
      EXPECT_EQ(key[row * 8 + column], rows[row] * 8 + column);
      EXPECT_EQ(value[row * 8 + column], row * 8 + column);
    }
}

TEST(GgufModel, RangesOfUnpermutedTensors) {
  const TempDir folder;
  const ModelSource source = open(folder);
  const format::TensorInfo& info = source.tensors->tensors().at("model.layers.0.self_attn.q_proj.weight");
  const auto whole = floats(source, info.name);
  for (int64_t first = 0; first <= 64; ++first)
    for (int64_t count = 0; count <= 64 - first; ++count) {
      std::vector<float> part(static_cast<size_t>(count));
      std::vector<uint16_t> bits(part.size());
      source.tensors->read_f32(info, first, count, part.data());
      source.tensors->read_bf16(info, first, count, bits.data());
      for (size_t i = 0; i < part.size(); ++i) {
        EXPECT_EQ(part[i], whole[first + i]);
        EXPECT_EQ(static_cast<uint32_t>(bits[i]) << 16, std::bit_cast<uint32_t>(part[i]));  // small integers are exact
      }
    }
  float value = 0;
  EXPECT_THROW(source.tensors->read_f32(info, 64, 1, &value), BugError);
}

TEST(GgufModel, BiasesAreUnpermutedToo) {
  const TempDir folder;
  Options options;
  options.config["attention_bias"] = true;
  options.config["mlp_bias"] = true;
  const ModelSource source = open(folder, options);
  EXPECT_TRUE(source.config.attention_bias && source.config.mlp_bias);
  EXPECT_EQ(floats(source, "model.layers.0.self_attn.q_proj.bias"), (std::vector<float>{0, 2, 1, 3, 4, 6, 5, 7}));
  EXPECT_EQ(floats(source, "model.layers.0.self_attn.v_proj.bias"), (std::vector<float>{0, 1, 2, 3}));
}

TEST(GgufModel, TiedWithoutAnOutputTensor) {
  const TempDir folder;
  Options options;
  options.leave_out = {"output.weight"};
  const ModelSource source = open(folder, options);
  EXPECT_TRUE(source.config.tie_word_embeddings);
  EXPECT_FALSE(source.tensors->tensors().contains("lm_head.weight"));
}

TEST(GgufModel, QuantisedTensorsAreSaidSo) {
  Options options;
  options.config["hidden_size"] = 32;
  options.leave_out = {"output.weight"};
  options.more = [](GgufBuilder& file) { file.tensor("output.weight", {32, 10}, 8, std::string(340, '\0')); };
  const TempDir folder;
  const ModelSource source = open(folder, options);
  EXPECT_TRUE(source.quantized);
  EXPECT_EQ(source.notes, std::vector<std::string>{"dequantised from Q8_0 (1 tensor)"});
}

// As llama.cpp's converter computes the tensor for Llama 3.1 (factor 8).
std::vector<float> llama3_divisors(int64_t head_dim, double theta, double factor) {
  std::vector<float> out;
  for (int64_t i = 0; i < head_dim; i += 2) {
    const double wavelength = 2 * std::numbers::pi * std::pow(theta, static_cast<double>(i) / static_cast<double>(head_dim));
    if (wavelength < 8192.0 / 4) out.push_back(1);
    else if (wavelength > 8192.0) out.push_back(static_cast<float>(factor));
    else {
      const double smooth = (8192.0 / wavelength - 1) / 3;
      out.push_back(static_cast<float>(1 / ((1 - smooth) / factor + smooth)));
    }
  }
  return out;
}

Options with_rope_freqs(const std::vector<float>& divisors) {
  Options options;
  options.config["head_dim"] = 128;
  options.more = [divisors](GgufBuilder& file) {
    file.u32("llama.attention.key_length", 128).u32("llama.attention.value_length", 128);
    file.u32("llama.rope.dimension_count", 128);
    file.tensor("rope_freqs.weight", {divisors.size()}, 0, raw_all(divisors));
  };
  return options;
}

TEST(GgufModel, Llama3RopeIsRecognised) {
  const TempDir folder;
  const ModelSource source = open(folder, with_rope_freqs(llama3_divisors(128, 100000.0, 8)));
  EXPECT_EQ(source.config.rope.kind, RopeKind::llama3);
  EXPECT_EQ(source.config.rope.factor, 8.0);
  EXPECT_EQ(source.config.rope.original_max_position_embeddings, 8192);
  EXPECT_EQ(source.config.raw["rope_parameters"].dump(),
            R"({"factor":8.0,"high_freq_factor":4.0,"low_freq_factor":1.0,"original_max_position_embeddings":8192,)"
            R"("rope_theta":100000.0,"rope_type":"llama3"})");
  EXPECT_TRUE(source.notes.empty());
}

TEST(GgufModel, OtherFrequencyFactorsAreRefused) {
  const TempDir folder;
  std::vector<float> divisors = llama3_divisors(128, 100000.0, 8);
  divisors[40] *= 0.99f;
  expect_user_error([&] { open(folder, with_rope_freqs(divisors)); }, {"rope_freqs.weight", "element 40"});
  divisors[40] = std::nanf("");
  expect_user_error([&] { open(folder, with_rope_freqs(divisors)); }, {"rope_freqs.weight", "element 40"});
  divisors.pop_back();
  expect_user_error([&] { open(folder, with_rope_freqs(divisors)); }, {"rope_freqs.weight", "63 elements"});
}

TEST(GgufModel, RopeScaling) {
  const TempDir folder;
  Options options;
  options.more = [](GgufBuilder& file) {
    file.string("llama.rope.scaling.type", "linear").f32("llama.rope.scaling.factor", 4);
  };
  EXPECT_EQ(open(folder, options).config.rope.kind, RopeKind::linear);
  EXPECT_EQ(open(folder, options).config.rope.factor, 4.0);
  options.more = [](GgufBuilder& file) { file.f32("llama.rope.scale_linear", 2); };
  EXPECT_EQ(open(folder, options).config.rope.factor, 2.0);
  options.more = [](GgufBuilder& file) { file.string("llama.rope.scaling.type", "yarn"); };
  expect_user_error([&] { open(folder, options); }, {"llama.rope.scaling.type", "yarn"});
}

TEST(GgufModel, Refused) {
  const TempDir folder;
  const auto refused = [&](const Options& options, std::vector<std::string> parts) {
    parts.push_back("model.gguf");
    expect_user_error([&] { open(folder, options); }, parts);
  };
  const auto without = [](std::set<std::string> names) {
    Options options;
    options.leave_out = std::move(names);
    return options;
  };
  const auto with_u32 = [](const char* key, uint32_t value) {
    Options options;
    options.more = [key, value](GgufBuilder& file) { file.u32(key, value); };
    return options;
  };
  Options other;
  other.architecture = "gemma3";
  refused(other, {"gemma3", "llama"});
  refused(without({"llama.block_count"}), {"llama.block_count"});
  refused(without({"blk.0.ffn_up.weight", "output_norm.weight"}), {"blk.0.ffn_up.weight", "output_norm.weight"});
  refused(without({"token_embd.weight"}), {"token_embd.weight"});
  refused(with_u32("llama.expert_count", 8), {"8 experts"});
  refused(with_u32("llama.vocab_size", 11), {"llama.vocab_size is 11", "10 rows"});
  refused(with_u32("llama.rope.dimension_count", 2), {"llama.rope.dimension_count"});
  Options wide;
  wide.leave_out = {"llama.feed_forward_length"};
  wide.more = [](GgufBuilder& file) { file.u32("llama.feed_forward_length", 13); };
  refused(wide, {"blk.0.ffn_gate.weight is [12, 8]", "[13, 8]"});
}

TEST(GgufModel, UnknownTensorsGiveANote) {
  const TempDir folder;
  Options options;
  options.more = [](GgufBuilder& file) { file.tensor("blk.0.attn_rot_embd", {2}, 0, raw_all<float>({1, 2})); };
  const ModelSource source = open(folder, options);
  ASSERT_EQ(source.notes.size(), 1u);
  EXPECT_NE(source.notes[0].find("blk.0.attn_rot_embd"), std::string::npos);
}

}  // namespace
}  // namespace aitraining::model
