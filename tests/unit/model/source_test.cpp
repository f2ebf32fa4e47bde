#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "unit/model/tiny_model.h"

namespace aitraining::model {
namespace {

using Json = nlohmann::ordered_json;
using test::expect_user_error;
using test::Shapes;
using test::TempDir;
using test::tiny_config;
using test::tiny_shapes;
using test::write_model;

std::vector<float> floats(const ModelSource& source, const std::string& name) {
  const format::TensorInfo& info = source.tensors->tensors().at(name);
  std::vector<float> out(static_cast<size_t>(info.elements()));
  source.tensors->read_f32(info, 0, info.elements(), out.data());
  return out;
}

std::string all_notes(const ModelSource& source) {
  std::string text;
  for (const std::string& note : source.notes) text += note + "\n";
  return text;
}

TEST(OpenModel, Folder) {
  const TempDir folder;
  write_model(folder, tiny_config(), tiny_shapes(tiny_config()));
  folder.write("generation_config.json", R"({"eos_token_id": 2})");
  const ModelSource source = open_model(folder.path());
  EXPECT_EQ(source.path, folder.path());
  EXPECT_EQ(source.tensors->tensors().size(), 12u);
  EXPECT_FALSE(source.quantized);
  EXPECT_TRUE(source.notes.empty()) << all_notes(source);
  EXPECT_EQ(*source.generation_config, (Json{{"eos_token_id", 2}}));
  EXPECT_EQ(floats(source, "model.norm.weight"), (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
  uint16_t bits = 0;
  source.tensors->read_bf16(source.tensors->tensors().at("lm_head.weight"), 3, 1, &bits);
  EXPECT_EQ(bits, 0x4040);
}

TEST(OpenModel, NamesWithoutTheModelPrefix) {
  const TempDir folder;
  Shapes bare;
  for (const auto& [name, shape] : tiny_shapes(tiny_config())) bare[name.starts_with("model.") ? name.substr(6) : name] = shape;
  write_model(folder, tiny_config(), bare);
  const ModelSource source = open_model(folder.path());
  EXPECT_TRUE(source.notes.empty()) << all_notes(source);
  EXPECT_EQ(floats(source, "model.layers.0.mlp.down_proj.weight")[95], 95.0f);
}

TEST(OpenModel, MissingTensorsAreListedNeverMadeUp) {
  const TempDir folder;
  Shapes shapes = tiny_shapes(tiny_config());
  shapes.erase("lm_head.weight");
  shapes.erase("model.layers.0.mlp.up_proj.weight");
  write_model(folder, tiny_config(), shapes);
  expect_user_error([&] { open_model(folder.path()); },
                    {folder.path().string(), "2 of 12", "lm_head.weight", "model.layers.0.mlp.up_proj.weight"});
}

TEST(OpenModel, TensorsMissingFromTheIndexAreListed) {
  const TempDir folder;
  folder.write("config.json", tiny_config().dump());
  Json index = {{"weight_map", Json::object()}};
  for (const auto& [name, shape] : tiny_shapes(tiny_config()))
    if (name != "model.norm.weight") index["weight_map"][name] = "part.safetensors";
  folder.write("model.safetensors.index.json", index.dump());
  test::write_tensors(folder.path() / "part.safetensors", tiny_shapes(tiny_config()));
  expect_user_error([&] { open_model(folder.path()); }, {"1 of 12", "model.norm.weight"});
}

TEST(OpenModel, ShapesThatDoNotFit) {
  const TempDir folder;
  Shapes shapes = tiny_shapes(tiny_config());
  shapes["model.embed_tokens.weight"] = {11, 8};
  shapes["model.norm.weight"] = {9};
  write_model(folder, tiny_config(), shapes);
  expect_user_error([&] { open_model(folder.path()); },
                    {"vocab_size is 10", "model.embed_tokens.weight has 11 rows", "model.norm.weight is [9]", "[8]"});
}

TEST(OpenModel, IntegersAreNoWeights) {
  const TempDir folder;
  folder.write("config.json", tiny_config().dump());
  std::string header = "{", sep;
  int64_t at = 0;
  for (const auto& [name, shape] : tiny_shapes(tiny_config())) {
    const int64_t end = at + test::product(shape);
    header += sep + "\"" + name + R"(":{"dtype":"I8","shape":)" + Json(shape).dump() + ",\"data_offsets\":" +
              Json({at, end}).dump() + "}";
    sep = ",";
    at = end;
  }
  folder.write("model.safetensors", test::safetensors_bytes(header + "}", std::string(static_cast<size_t>(at), '\0')));
  expect_user_error([&] { open_model(folder.path()); }, {"model.embed_tokens.weight is stored as I8"});
}

TEST(OpenModel, ExtraTensorsGiveANote) {
  const TempDir folder;
  Shapes shapes = tiny_shapes(tiny_config());
  shapes["model.layers.0.self_attn.rotary_emb.inv_freq"] = {2};
  write_model(folder, tiny_config(), shapes);
  const ModelSource source = open_model(folder.path());
  EXPECT_EQ(source.tensors->tensors().size(), 12u);
  EXPECT_NE(all_notes(source).find("rotary_emb.inv_freq"), std::string::npos);
}

TEST(OpenModel, TiedHead) {
  Json config = tiny_config();
  config["tie_word_embeddings"] = true;
  {
    const TempDir folder;  // not stored
    write_model(folder, config, tiny_shapes(config));
    EXPECT_EQ(open_model(folder.path()).tensors->tensors().size(), 11u);
  }
  Shapes both = tiny_shapes(config);
  both["lm_head.weight"] = {10, 8};
  {
    const TempDir folder;  // stored twice with equal values
    write_model(folder, config, both);
    const ModelSource source = open_model(folder.path());
    EXPECT_FALSE(source.tensors->tensors().contains("lm_head.weight"));
    EXPECT_TRUE(source.notes.empty()) << all_notes(source);
  }
  {
    const TempDir folder;  // stored twice, not the same
    both["lm_head.weight"] = {8, 10};
    write_model(folder, config, both);
    expect_user_error([&] { open_model(folder.path()); }, {"tie_word_embeddings", "lm_head.weight"});
  }
  {
    const TempDir folder;  // stored under the head's name alone
    both["lm_head.weight"] = {10, 8};
    both.erase("model.embed_tokens.weight");
    write_model(folder, config, both);
    EXPECT_EQ(floats(open_model(folder.path()), "model.embed_tokens.weight")[79], 79.0f);
  }
}

TEST(OpenModel, CodeAndPickleAreNeverTouched) {
  const TempDir folder;
  Json config = tiny_config();
  config["auto_map"] = {{"AutoModelForCausalLM", "modeling_evil.Evil"}};
  folder.write("config.json", config.dump());
  folder.write("modeling_evil.py", "open('pwned', 'w')");
  folder.write("pytorch_model.bin", "cos\nsystem\n(S'touch pwned'\ntR.");
  expect_user_error([&] { open_model(folder.path()); }, {"pytorch_model.bin", "pickle", "safetensors"});
  write_model(folder, config, tiny_shapes(tiny_config()));
  const ModelSource source = open_model(folder.path());
  EXPECT_NE(all_notes(source).find("auto_map"), std::string::npos);
  EXPECT_FALSE(source.config.raw.contains("auto_map"));
  EXPECT_FALSE(std::filesystem::exists("pwned") || std::filesystem::exists(folder.path() / "pwned"));
}

TEST(OpenModel, WhatIsNoModel) {
  const TempDir folder;
  expect_user_error([&] { open_model(folder.path() / "none"); }, {"none", "no such"});
  expect_user_error([&] { open_model(folder.path()); }, {folder.path().string(), "config.json"});
  expect_user_error([&] { open_model(folder.write("model.safetensors", "")); }, {"model.safetensors", "folder"});
  folder.write("adapter_config.json", "{}");
  expect_user_error([&] { open_model(folder.path()); }, {"adapter", "base model"});
  folder.write("config.json", "{\"a\": 1, \"a\": 2}");
  expect_user_error([&] { open_model(folder.path()); }, {"config.json", "twice"});
  folder.write("config.json", std::string(100'000, '['));
  expect_user_error([&] { open_model(folder.path()); }, {"config.json", "nested deeper"});
}

}  // namespace
}  // namespace aitraining::model
