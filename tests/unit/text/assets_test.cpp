#include "aitraining/text/assets.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/text_fixtures.h"
#include "support/weight_files.h"

namespace aitraining::text {
namespace {

using namespace test;
using nlohmann::ordered_json;

const ordered_json kMessages = {{{"role", "user"}, {"content", "hi"}}};
const std::string kConfig =
    R"({"bos_token": "<s>", "eos_token": {"content": "<|im_end|>", "lstrip": false}, "pad_token": "<pad>"})";

struct Folder : TempDir {
  explicit Folder(const std::string& config = kConfig) {
    write("tokenizer.json", t0_json().dump());
    write("tokenizer_config.json", config);
  }
  TextAssets load() const { return load_text_assets(path()); }
  std::string rendered() const {
    const auto assets = load();
    return assets.chat_template ? assets.chat_template->render(kMessages, nullptr, false).text
                                : "no template";
  }
};

std::string config_with(const ordered_json& chat_template) {
  return ordered_json{{"chat_template", chat_template}}.dump();
}

TEST(Assets, ReadsSpecialTokensAsTextOrObject) {
  const auto assets = Folder().load();
  ASSERT_TRUE(assets.bos && assets.eos && assets.pad);
  EXPECT_EQ(assets.bos->id, kBos);
  EXPECT_EQ(assets.eos->text, "<|im_end|>");
  EXPECT_EQ(assets.eos->id, kImEnd);
  EXPECT_EQ(assets.pad->id, kPad);
  EXPECT_FALSE(assets.chat_template.has_value());
}

TEST(Assets, SpecialTokensMapFillsWhatTheConfigLeavesOut) {
  Folder folder(R"({"bos_token": null})");
  folder.write("special_tokens_map.json",
               R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}})");
  const auto assets = folder.load();
  EXPECT_FALSE(assets.bos.has_value());  // the config says: none
  EXPECT_EQ(assets.eos->id, kEos);
  EXPECT_FALSE(assets.pad.has_value());
}

TEST(Assets, TokenizerJsonAloneIsEnough) {
  TempDir folder;
  folder.write("tokenizer.json", t0_json().dump());
  const auto assets = load_text_assets(folder.path());
  EXPECT_FALSE(assets.bos || assets.eos || assets.pad || assets.chat_template ||
               assets.model_max_length);
  EXPECT_EQ(assets.files.size(), 1u);
}

TEST(Assets, TokensOnlyNamedInTheConfigGetTheirIds) {
  Folder folder(R"({"pad_token": "[PAD]", "eos_token": "<turn>", "added_tokens_decoder": {
      "261": {"content": "<turn>", "special": true}, "258": {"content": "<pad>", "special": true}}})");
  const auto assets = folder.load();
  EXPECT_EQ(assets.eos->id, 261);
  EXPECT_EQ(assets.pad->id, 262);
  EXPECT_EQ(assets.tokenizer.encode("a<turn>[PAD]", false).ids,
            (std::vector<int32_t>{'a', 261, 262}));
  EXPECT_TRUE(assets.tokenizer.is_special(262));
  EXPECT_EQ(assets.files.at("tokenizer.json"),
            t0_json().dump());  // the file itself stays as it was
}

TEST(Assets, LengthLimitOnlyWhenItIsOne) {
  const auto limit = [](const std::string& value) {
    return Folder("{\"model_max_length\": " + value + "}").load().model_max_length;
  };
  EXPECT_EQ(limit("2048"), 2048);
  EXPECT_EQ(limit("512.0"), 512);
  for (const char* none :
       {"1000000000000000019884624838656", "1000000000", "1e30", "0", "-5", "null", "\"long\""}) {
    EXPECT_FALSE(limit(none).has_value()) << none;
  }
}

TEST(Assets, FilesAreKeptByteForByte) {
  Folder folder("{ \"bos_token\":\"<s>\" , \"odd\" : 1.50 }\r\n\r\n");
  folder.write("chat_template.jinja", "A\r\n");
  folder.write("merges.txt", "#version\n");
  folder.write("model.safetensors", "not text");
  std::filesystem::create_directories(folder.path() / "additional_chat_templates");
  folder.write("additional_chat_templates/tool_use.jinja", "T");
  const auto files = folder.load().files;
  EXPECT_EQ(files.at("tokenizer_config.json"),
            "{ \"bos_token\":\"<s>\" , \"odd\" : 1.50 }\r\n\r\n");
  EXPECT_EQ(files.at("chat_template.jinja"), "A\r\n");
  EXPECT_EQ(files.at("merges.txt"), "#version\n");
  EXPECT_EQ(files.at("additional_chat_templates/tool_use.jinja"), "T");
  EXPECT_FALSE(files.contains("model.safetensors"));
}

TEST(Assets, TemplateFileWinsOverConfigAndConfigOverJson) {
  Folder folder(config_with("from config"));
  EXPECT_EQ(folder.rendered(), "from config");
  folder.write("chat_template.json", R"({"chat_template": "from json"})");
  EXPECT_EQ(folder.rendered(), "from config");
  folder.write("chat_template.jinja", "from file");
  EXPECT_EQ(folder.rendered(), "from file");
  Folder legacy("{}");
  legacy.write("chat_template.json", R"({"chat_template": "from json"})");
  EXPECT_EQ(legacy.rendered(), "from json");
}

TEST(Assets, OfNamedTemplatesTheDefaultOneIsUsed) {
  const auto named = [](const char* name, const char* text) {
    return ordered_json{{"name", name}, {"template", text}};
  };
  EXPECT_EQ(Folder(config_with({named("tool_use", "T"), named("default", "D")})).rendered(), "D");
  EXPECT_EQ(Folder(config_with(ordered_json::array({named("only", "O")}))).rendered(), "O");
  EXPECT_EQ(Folder(config_with({named("tool_use", "T"), named("rag", "R")})).rendered(),
            "no template");
  expect_user_error([] { Folder(config_with(ordered_json::array({"text"}))).load(); },
                    {"tokenizer_config.json", "chat_template"});
  expect_user_error([] { Folder(config_with(5)).load(); },
                    {"tokenizer_config.json", "chat_template"});
}

TEST(Assets, TemplateSeesTheModelsTokens) {
  Folder folder;
  folder.write("chat_template.jinja",
               "{{ bos_token }}{{ eos_token }}{{ pad_token }}{{ unk_token is defined }}");
  EXPECT_EQ(folder.rendered(), "<s><|im_end|><pad>False");
}

TEST(Assets, ATemplateThatCannotBeReadMattersOnlyWhenUsed) {
  Folder folder;
  folder.write("chat_template.jinja", "{% if %}");
  auto assets = folder.load();
  EXPECT_FALSE(assets.chat_template.has_value());
  expect_user_error([&] { choose_chat_template(assets, "tokenizer"); },
                    {"chat_template.jinja", "line 1", "--chat-template"});
  choose_chat_template(assets, "chatml");
  EXPECT_TRUE(assets.chat_template.has_value());
}

TEST(Assets, MissingTokenizerNamesFolderAndWayOut) {
  TempDir folder;
  expect_user_error([&] { load_text_assets(folder.path()); },
                    {folder.path().string(), "tokenizer.json", "save_pretrained"});
  folder.write("tokenizer.model", "x");
  expect_user_error([&] { load_text_assets(folder.path()); },
                    {folder.path().string(), "older form"});
  expect_user_error([&] { load_text_assets(folder.path() / "nope"); }, {"nope", "does not exist"});
}

TEST(Assets, BrokenJsonNamesTheFile) {
  expect_user_error([] { Folder("{\"bos_token\": ").load(); }, {"tokenizer_config.json", "line 1"});
  expect_user_error([] { Folder("[]").load(); }, {"tokenizer_config.json", "object"});
  expect_user_error([] { Folder(R"({"added_tokens_decoder": {"x": {"content": "a"}}})").load(); },
                    {"tokenizer_config.json", "added_tokens_decoder", "\"x\""});
  Folder map;
  map.write("special_tokens_map.json", "nonsense");
  expect_user_error([&] { map.load(); }, {"special_tokens_map.json"});
}

TEST(Assets, OpensAFolder) {
  const Folder folder;
  EXPECT_EQ(open_text_assets(folder.path()).tokenizer.size(), 261);
}

}  // namespace
}  // namespace aitraining::text
