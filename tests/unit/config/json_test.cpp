#include "config_test_support.h"
#include "field_table.h"

namespace aitraining::config {
namespace {

std::string json_refusal(const char* text) {
  try {
    from_json(nlohmann::ordered_json::parse(text), "p.json");
  } catch (const UserError& e) {
    return e.what();
  }
  return "accepted";
}

TEST(Json, RoundTripKeepsEveryValueButSecrets) {
  TrainingParams p =
      params_of(llm({"--lr", "2e-5", "--peft", "--valid-split", "test", "--no-merge-adapter",
                     "--packing", "--token", "hf_SECRET", "--max-samples", "7"}));
  const auto json = to_json(p);
  EXPECT_EQ(json.dump().find("hf_SECRET"), std::string::npos);
  EXPECT_FALSE(json.contains("token"));
  EXPECT_FALSE(json.contains("wandb_token"));
  const TrainingParams back = from_json(json, "p.json");
  EXPECT_EQ(to_json(back), json);
  EXPECT_EQ(back.lr, 2e-5);
  EXPECT_EQ(back.valid_split, "test");
  EXPECT_EQ(back.max_samples, 7);
  EXPECT_EQ(back.packing, true);
  EXPECT_FALSE(back.merge_adapter);
  EXPECT_EQ(back.token, std::nullopt);
}

TEST(Json, KeysStandInTableOrder) {
  const auto json = to_json(default_params());
  auto key = json.begin();
  for (const Field* field : fields_of(Task::llm)) {
    if (field->secret) continue;
    ASSERT_NE(key, json.end());
    EXPECT_EQ(key.key(), field->name);
    ++key;
  }
  EXPECT_EQ(key, json.end());
}

TEST(Json, ExplicitNoTemplateSurvivesAndUnsetStaysUnset) {
  EXPECT_EQ(from_json(to_json(params_of(llm({"--chat-template", "none"}))), "p").chat_template,
            "none");
  EXPECT_EQ(from_json(to_json(params_of(llm({}))), "p").chat_template, std::nullopt);
}

TEST(Json, StrictAboutNamesAndTypes) {
  const std::string message = json_refusal(
      R"({"lr": "2e-5", "epochs": 1.5, "peft": 1, "batchsize": 2, "token": "x", "model": null})");
  EXPECT_HAS(message, "p.json: lr: '\"2e-5\"' is not a number");
  EXPECT_HAS(message, "p.json: epochs: '1.5' is not a whole number");
  EXPECT_HAS(message, "p.json: peft: '1' is not true or false");
  EXPECT_HAS(message, "unknown key 'batchsize'; did you mean 'batch_size'?");
  EXPECT_HAS(message, "unknown key 'token'");
  EXPECT_HAS(message, "p.json: model: 'null' is not a text");
  EXPECT_HAS(json_refusal("[1]"), "an object of parameters is due");
  EXPECT_EQ(json_refusal(R"({"lr": 1})"), "accepted");
}

}  // namespace
}  // namespace aitraining::config
