#include <gtest/gtest.h>

#include "aitraining/report/records.h"

namespace aitraining::report {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

ModelCard card_of(bool peft, bool merged) {
  ModelCard card;
  card.title = "my-model";
  card.base_model = "/models/smol";
  card.peft = peft;
  card.merged = merged;
  card.version = "0.1.0";
  card.table = {{"Base Model", "/models/smol"}, {"Trainer", "sft"}, {"Note", "a|b\nc"}};
  return card;
}

TEST(ModelCardTest, LocalModelAndDataAreNotNamedInTheFrontMatter) {
  const std::string text = render_model_card(card_of(false, false));
  EXPECT_EQ(text.rfind("---\ntags:\n- aitraining\n- text-generation-inference\n- "
                       "text-generation\nlibrary_name: transformers\n",
                       0),
            0u);
  EXPECT_FALSE(has(text, "base_model:"));
  EXPECT_FALSE(has(text, "datasets:"));
  EXPECT_FALSE(has(text, "- peft"));
  EXPECT_TRUE(has(text, "license: other\n---\n\n# my-model\n\nTrained with aitraining 0.1.0.\n"));
  EXPECT_TRUE(has(text, "| Base Model | /models/smol |\n| Trainer | sft |\n| Note | a\\|b c |\n"));
}

TEST(ModelCardTest, HubNamesAreValidYaml) {
  ModelCard card = card_of(false, false);
  card.base_is_local = card.dataset_is_local = false;
  card.base_model = "meta-llama/Llama-3.2-1B";
  card.dataset = "null: #x";
  const std::string text = render_model_card(card);
  EXPECT_TRUE(has(text, "\nbase_model: meta-llama/Llama-3.2-1B\n"));
  EXPECT_TRUE(has(text, "\ndatasets:\n- \"null: #x\"\n"));
}

TEST(ModelCardTest, TellsHowToLoadWhatIsThere) {
  const std::string full = render_model_card(card_of(false, false));
  EXPECT_TRUE(has(full, "AutoModelForCausalLM.from_pretrained(\".\")"));
  EXPECT_FALSE(has(full, "PeftModel"));

  const std::string merged = render_model_card(card_of(true, true));
  EXPECT_TRUE(has(merged, "- peft\n"));
  EXPECT_TRUE(has(merged, "AutoModelForCausalLM.from_pretrained(\".\")"));
  EXPECT_TRUE(has(merged, "from_pretrained(\"/models/smol\")"));
  EXPECT_TRUE(has(merged, "PeftModel.from_pretrained(base, \"adapter\")"));

  const std::string adapter = render_model_card(card_of(true, false));
  EXPECT_TRUE(has(adapter, "PeftModel.from_pretrained(base, \".\")"));
  EXPECT_FALSE(has(adapter, "AutoModelForCausalLM.from_pretrained(\".\")"));
  EXPECT_TRUE(
      has(adapter, "tools merge-llm-adapter --base-model-path \"/models/smol\" --adapter-path ."));
}

TEST(ModelCardTest, ResultsOnlyWhenThereAreSome) {
  ModelCard card = card_of(false, false);
  EXPECT_FALSE(has(render_model_card(card), "## Results"));
  card.eval_loss = 1.25;
  EXPECT_TRUE(has(render_model_card(card), "| Validation loss | 1.2500 |"));
  EXPECT_FALSE(has(render_model_card(card), "Training loss"));
}

TEST(ModelCardTest, LicenseNote) {
  ModelCard card = card_of(false, false);
  EXPECT_FALSE(has(render_model_card(card), "## License"));
  card.license_note = "As the base model.";
  EXPECT_TRUE(has(render_model_card(card), "## License\n\nAs the base model.\n"));
}

}  // namespace
}  // namespace aitraining::report
