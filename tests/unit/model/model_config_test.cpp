#include "aitraining/model/model_config.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace aitraining::model {
namespace {

using Json = nlohmann::ordered_json;
using test::expect_user_error;

Json tiny() {
  return Json::parse(R"({
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 32, "intermediate_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 264,
    "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "rope_parameters": {"rope_type": "default", "rope_theta": 500.0},
    "dtype": "bfloat16", "made_up_key": {"kept": 1}})");
}

Json with(const std::string& changes) {
  Json json = tiny();
  const Json changed = Json::parse(changes);
  for (const auto& [key, value] : changed.items()) json[key] = value;
  return json;
}

ModelConfig parse(const Json& json) { return parse_config(json, "dir/config.json"); }

TEST(ModelConfig, NewSpelling) {
  const ModelConfig config = parse(tiny());
  EXPECT_EQ(config.architecture, "LlamaForCausalLM");
  EXPECT_EQ(config.hidden_size, 32);
  EXPECT_EQ(config.intermediate_size, 64);
  EXPECT_EQ(config.num_layers, 2);
  EXPECT_EQ(config.num_heads, 4);
  EXPECT_EQ(config.num_kv_heads, 2);
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_EQ(config.vocab_size, 264);
  EXPECT_EQ(config.max_position_embeddings, 256);
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
  EXPECT_EQ(config.rope.kind, RopeKind::standard);
  EXPECT_EQ(config.rope.theta, 500.0);
  EXPECT_FALSE(config.tie_word_embeddings);
  EXPECT_EQ(config.stored_dtype, "bfloat16");
  EXPECT_EQ(config.raw, tiny());
}

TEST(ModelConfig, OldSpelling) {
  Json json = with(R"({"rope_theta": 10000, "torch_dtype": "float16", "rope_scaling": {"type": "linear", "factor": 2}})");
  json.erase("rope_parameters");
  json.erase("dtype");
  const ModelConfig config = parse(json);
  EXPECT_EQ(config.rope.kind, RopeKind::linear);
  EXPECT_EQ(config.rope.theta, 10000.0);
  EXPECT_EQ(config.rope.factor, 2.0);
  EXPECT_EQ(config.stored_dtype, "float16");
}

TEST(ModelConfig, Defaults) {
  Json json = with(R"({"rope_scaling": null, "head_dim": null})");
  for (const char* key : {"rope_parameters", "dtype", "rms_norm_eps", "num_key_value_heads", "architectures"}) json.erase(key);
  const ModelConfig config = parse(json);
  EXPECT_EQ(config.architecture, "LlamaForCausalLM");
  EXPECT_EQ(config.num_kv_heads, 4);
  EXPECT_EQ(config.rms_norm_eps, 1e-6);
  EXPECT_EQ(config.rope.theta, 10000.0);
  EXPECT_EQ(config.rope.kind, RopeKind::standard);
  EXPECT_EQ(config.stored_dtype, "");
}

TEST(ModelConfig, Llama3Rope) {
  const Json scaling = Json::parse(R"({"rope_type": "llama3", "factor": 32, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                      "original_max_position_embeddings": 64})");
  Json old = with(R"({"rope_theta": 500000.0})");
  old.erase("rope_parameters");
  old["rope_scaling"] = scaling;
  Json fresh = tiny();
  fresh["rope_parameters"] = scaling;
  fresh["rope_parameters"]["rope_theta"] = 500000.0;
  for (const Json& json : {old, fresh}) {
    const ModelConfig config = parse(json);
    EXPECT_EQ(config.rope.kind, RopeKind::llama3);
    EXPECT_EQ(config.rope.theta, 500000.0);
    EXPECT_EQ(config.rope.factor, 32.0);
    EXPECT_EQ(config.rope.low_freq_factor, 1.0);
    EXPECT_EQ(config.rope.high_freq_factor, 4.0);
    EXPECT_EQ(config.rope.original_max_position_embeddings, 64);
  }
  fresh["rope_parameters"].erase("original_max_position_embeddings");
  EXPECT_EQ(parse(fresh).rope.original_max_position_embeddings, 256);
}

struct Refused {
  const char* changes;
  std::vector<std::string> message;
};

TEST(ModelConfig, RefusesWithFileKeyAndValue) {
  const Refused cases[] = {
      {R"({"architectures": ["GPT2LMHeadModel"]})", {"architectures", "GPT2LMHeadModel", "LlamaForCausalLM"}},
      {R"({"architectures": "LlamaForCausalLM"})", {"architectures"}},
      {R"({"architectures": null, "model_type": "qwen2"})", {"model_type", "qwen2", "LlamaForCausalLM"}},
      {R"({"architectures": ["FooModel"], "auto_map": {"AutoModel": "foo.FooModel"}})", {"FooModel", "auto_map", "never run"}},
      {R"({"quantization_config": {"quant_method": "gptq", "bits": 4}})", {"quantization_config", "gptq"}},
      {R"({"quantization_config": {}})", {"quantization_config"}},
      {R"({"hidden_act": "gelu"})", {"hidden_act", "gelu", "silu"}},
      {R"({"hidden_size": null})", {"\"hidden_size\" is missing"}},
      {R"({"hidden_size": "32"})", {"hidden_size", "\"32\""}},
      {R"({"hidden_size": 32.5})", {"hidden_size", "32.5"}},
      {R"({"hidden_size": 0})", {"hidden_size", " 0"}},
      {R"({"vocab_size": -1})", {"vocab_size", "-1"}},
      {R"({"vocab_size": 18446744073709551615})", {"vocab_size", "18446744073709551615"}},
      {R"({"max_position_embeddings": 2147483648})", {"max_position_embeddings", "2147483648"}},
      {R"({"num_hidden_layers": 1000000})", {"num_hidden_layers", "1000000"}},
      {R"({"num_attention_heads": 5, "num_key_value_heads": 5})", {"num_attention_heads", "hidden_size"}},
      {R"({"num_key_value_heads": 3})", {"num_key_value_heads", "3"}},
      {R"({"num_attention_heads": 32, "num_key_value_heads": 32})", {"heads of 1"}},
      {R"({"num_attention_heads": 2147483647, "head_dim": 2147483646, "num_key_value_heads": 1})", {"num_attention_heads"}},
      {R"({"rms_norm_eps": "small"})", {"rms_norm_eps", "small"}},
      {R"({"rms_norm_eps": -1})", {"rms_norm_eps", "-1"}},
      {R"({"tie_word_embeddings": 1})", {"tie_word_embeddings", "true or false"}},
      {R"({"dtype": 16})", {"dtype", "16"}},
      {R"({"rope_parameters": 1})", {"rope_parameters"}},
      {R"({"rope_parameters": {"rope_type": "yarn", "factor": 4}})", {"rope_parameters.rope_type", "yarn", "llama3"}},
      {R"({"rope_scaling": {"type": "dynamic", "factor": 4}})", {"rope_scaling.type", "dynamic"}},
      {R"({"rope_scaling": {"rope_type": "longrope"}})", {"rope_scaling.rope_type", "longrope"}},
      {R"({"rope_scaling": {"rope_type": "linear"}})", {"rope_scaling.factor"}},
      {R"({"rope_scaling": {"rope_type": "linear", "factor": 0.5}})", {"rope_scaling.factor", "0.5"}},
      {R"({"rope_scaling": {"rope_type": "llama3", "factor": 8}})", {"rope_scaling.low_freq_factor"}},
      {R"({"rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4}})", {"high_freq_factor"}},
      {R"({"rope_parameters": {"full_attention": {"rope_type": "default"}}})", {"full_attention"}},
      {R"({"rope_theta": 0})", {"rope_theta"}},
      {R"({"partial_rotary_factor": 0.5})", {"partial_rotary_factor", "0.5"}},
  };
  for (const Refused& refused : cases) {
    SCOPED_TRACE(refused.changes);
    std::vector<std::string> parts = refused.message;
    parts.push_back("dir/config.json");
    expect_user_error([&] { parse(with(refused.changes)); }, parts);
  }
  expect_user_error([] { parse(Json::array()); }, {"dir/config.json"});
}

TEST(ModelConfig, MistralOnlyWithoutAWindow) {
  Json json = with(R"({"architectures": ["MistralForCausalLM"], "sliding_window": null})");
  EXPECT_EQ(parse(json).architecture, "MistralForCausalLM");
  json["sliding_window"] = 4096;
  expect_user_error([&] { parse(json); }, {"sliding_window", "4096"});
  json.erase("sliding_window");
  expect_user_error([&] { parse(json); }, {"sliding_window", "missing"});
}

TEST(ModelConfig, CodeOfTheModelIsNotNeededForABuiltInArchitecture) {
  EXPECT_EQ(parse(with(R"({"auto_map": {"AutoModelForCausalLM": "x.Y"}})")).architecture, "LlamaForCausalLM");
}

TEST(ModelConfig, ExpectedTensors) {
  const auto names = expected_tensors(parse(with(R"({"num_hidden_layers": 1, "head_dim": 16})")));
  using Entry = std::pair<std::string, std::vector<int64_t>>;
  const std::vector<Entry> right = {{"model.embed_tokens.weight", {264, 32}},
                                    {"model.layers.0.self_attn.q_proj.weight", {64, 32}},
                                    {"model.layers.0.self_attn.k_proj.weight", {32, 32}},
                                    {"model.layers.0.self_attn.v_proj.weight", {32, 32}},
                                    {"model.layers.0.self_attn.o_proj.weight", {32, 64}},
                                    {"model.layers.0.mlp.gate_proj.weight", {64, 32}},
                                    {"model.layers.0.mlp.up_proj.weight", {64, 32}},
                                    {"model.layers.0.mlp.down_proj.weight", {32, 64}},
                                    {"model.layers.0.input_layernorm.weight", {32}},
                                    {"model.layers.0.post_attention_layernorm.weight", {32}},
                                    {"model.norm.weight", {32}},
                                    {"lm_head.weight", {264, 32}}};
  EXPECT_EQ(names, right);
  const auto biased = expected_tensors(
      parse(with(R"({"num_hidden_layers": 1, "attention_bias": true, "mlp_bias": true, "tie_word_embeddings": true})")));
  EXPECT_EQ(biased.size(), 11u + 7u);
  EXPECT_EQ(biased[4], (Entry{"model.layers.0.self_attn.k_proj.bias", {16}}));
  EXPECT_EQ(biased.back().first, "model.norm.weight");
}

}  // namespace
}  // namespace aitraining::model
