#include <gtest/gtest.h>

#include "aitraining/text/assets.h"
#include "builtin_templates.h"
#include "support/expect_error.h"
#include "support/text_fixtures.h"
#include "support/weight_files.h"

namespace aitraining::text {
namespace {

using namespace test;
using nlohmann::ordered_json;

const ordered_json kTurn = {{{"role", "user"}, {"content", "hi"}},
                            {{"role", "assistant"}, {"content", "yo"}}};
const ordered_json kWithSystem = {{{"role", "system"}, {"content", "sys"}}, kTurn[0], kTurn[1]};

// T0 as a model folder whose eos is </s>, with more added tokens.
TextAssets assets_with(const std::vector<std::string>& added, const std::string& config) {
  TempDir folder;
  folder.write("tokenizer.json", t0_json({.bos_post_processor = false, .added = added}).dump());
  folder.write("tokenizer_config.json", config);
  return load_text_assets(folder.path());
}

TextAssets full() {
  return assets_with({"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<start_of_turn>",
                      "<end_of_turn>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"},
                     R"({"bos_token": "<s>", "eos_token": "</s>", "chat_template": "OWN"})");
}

std::string render_with(const std::string& name, const ordered_json& messages,
                        bool prompt = false) {
  auto assets = full();
  choose_chat_template(assets, name);
  return assets.chat_template->render(messages, nullptr, prompt).text;
}

TEST(ChooseTemplate, NoneAndTokenizer) {
  auto assets = full();
  choose_chat_template(assets, "tokenizer");
  EXPECT_EQ(assets.chat_template->source(), "OWN");
  choose_chat_template(assets, "none");
  EXPECT_FALSE(assets.chat_template.has_value());
  EXPECT_FALSE(assets.files.contains("chat_template.jinja"));
}

TEST(ChooseTemplate, BaseTokenizerWithoutTemplateNamesTheWayOut) {
  auto assets = assets_with({}, R"({"bos_token": "<s>", "eos_token": "</s>"})");
  expect_user_error([&] { choose_chat_template(assets, "tokenizer"); },
                    {"no chat template", "--chat-template chatml", "zephyr", "file"});
}

TEST(ChooseTemplate, BuiltInFormats) {
  EXPECT_EQ(render_with("chatml", kTurn),
            "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nyo<|im_end|>\n");
  EXPECT_EQ(render_with("zephyr", kTurn), "<|user|>\nhi</s>\n<|assistant|>\nyo</s>\n");
  EXPECT_EQ(render_with("llama3", kTurn),
            "<s><|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\nyo<|eot_id|>");
  EXPECT_EQ(render_with("llama", kWithSystem),
            "<s>[INST] <<SYS>>\nsys\n<</SYS>>\n\nhi [/INST] yo </s>");
  EXPECT_EQ(render_with("mistral", kTurn), "<s>[INST] hi [/INST] yo</s>");
  EXPECT_EQ(render_with("gemma", kTurn),
            "<s><start_of_turn>user\nhi<end_of_turn>\n<start_of_turn>model\nyo<end_of_turn>\n");
  EXPECT_EQ(render_with("phi3", kTurn), "<|user|>\nhi<|end|>\n<|assistant|>\nyo<|end|>\n");
  EXPECT_EQ(render_with("alpaca", kWithSystem),
            "<s>sys\n\n### Instruction:\nhi\n\n### Response:\nyo</s>\n\n");
  EXPECT_EQ(render_with("vicuna", kWithSystem), "<s>sys USER: hi ASSISTANT: yo</s>");
}

TEST(ChooseTemplate, BuiltInGenerationPrompts) {
  const ordered_json user = ordered_json::array({kTurn[0]});
  for (const auto& candidate : builtin_templates()) {
    const std::string name(candidate.name);
    const auto with = render_with(name, user, true), whole = render_with(name, kTurn);
    // What comes before the answer in training is what is asked with.
    EXPECT_EQ(whole.substr(0, with.size()), with) << name;
    EXPECT_GE(with.size(), render_with(name, user).size()) << name;
  }
}

TEST(ChooseTemplate, FormatsWithoutASystemTurnRefuseIt) {
  for (const char* name : {"mistral", "gemma"})
    EXPECT_THROW(render_with(name, kWithSystem), TemplateError) << name;
}

TEST(ChooseTemplate, TokensThatWouldBeSplitAreAnError) {
  auto assets = assets_with({}, R"({"bos_token": "<s>", "eos_token": "</s>"})");
  expect_user_error([&] { choose_chat_template(assets, "gemma"); },
                    {"gemma", "<start_of_turn>", "chatml"});
  expect_user_error([&] { choose_chat_template(assets, "llama3"); },
                    {"llama3", "<|start_header_id|>"});
  auto no_eos = assets_with({}, "{}");
  expect_user_error([&] { choose_chat_template(no_eos, "zephyr"); }, {"zephyr", "eos"});
  EXPECT_FALSE(no_eos.files.contains("chat_template.jinja"));
}

TEST(ChooseTemplate, AChosenTemplateIsSavedWithTheModel) {
  auto assets = full();
  const std::string config = assets.files.at("tokenizer_config.json");
  choose_chat_template(assets, "chatml");
  EXPECT_EQ(assets.files.at("chat_template.jinja"), assets.chat_template->source());
  EXPECT_EQ(assets.files.at("tokenizer_config.json"), config);
}

TEST(ChooseTemplate, AFileOfOnesOwn) {
  TempDir folder;
  const auto good = folder.write("mine.jinja", "{{ bos_token }}MINE\n"),
             bad = folder.write("bad.jinja", "\n{% for %}");
  auto assets = full();
  choose_chat_template(assets, good.string());
  EXPECT_EQ(assets.chat_template->render(kTurn, nullptr, false).text, "<s>MINE");
  EXPECT_EQ(assets.files.at("chat_template.jinja"), "{{ bos_token }}MINE\n");
  expect_user_error([&] { choose_chat_template(assets, bad.string()); }, {"bad.jinja", "line 2"});
}

TEST(ChooseTemplate, UnknownNamesListTheKnownOnes) {
  auto assets = full();
  expect_user_error([&] { choose_chat_template(assets, "chatlm"); },
                    {"chatlm", "did you mean chatml?", "zephyr"});
}

}  // namespace
}  // namespace aitraining::text
