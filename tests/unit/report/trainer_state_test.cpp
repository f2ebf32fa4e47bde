#include <cmath>

#include <gtest/gtest.h>

#include "aitraining/core/error.h"
#include "aitraining/report/records.h"

namespace aitraining::report {
namespace {

using nlohmann::ordered_json;

TrainerState trained() {
  TrainerState state;
  state.on_start({.total_updates = 6,
                  .num_epochs = 3,
                  .batch_size = 2,
                  .logging_steps = 1,
                  .save_steps = 500});
  state.on_step({.step = 1,
                 .epoch = 1.0 / 3,
                 .loss = 3.5402980000000001,
                 .grad_norm = 0.1 + 0.2,
                 .learning_rate = 8.0 / 9600,
                 .num_trained_tokens = 8,
                 .num_input_tokens_seen = 100});
  state.on_eval({.step = 2, .epoch = 1, .loss = 2.0 / 3, .num_tokens = 5, .seconds = 0.5});
  return state;
}

TEST(TrainerStateTest, HasHuggingFacesKeys) {
  const ordered_json json = trained().to_json(2, 1.0);
  EXPECT_EQ(json.at("global_step"), 2);
  EXPECT_EQ(json.at("epoch"), 1.0);
  EXPECT_EQ(json.at("max_steps"), 6);
  EXPECT_EQ(json.at("num_train_epochs"), 3);
  EXPECT_EQ(json.at("logging_steps"), 1);
  EXPECT_EQ(json.at("save_steps"), 500);
  EXPECT_EQ(json.at("train_batch_size"), 2);
  EXPECT_EQ(json.at("num_input_tokens_seen"), 100);
  EXPECT_TRUE(json.at("best_metric").is_null());
  EXPECT_TRUE(json.at("best_model_checkpoint").is_null());
  ASSERT_EQ(json.at("log_history").size(), 2u);
}

TEST(TrainerStateTest, NumbersComeBackBitForBit) {
  const ordered_json back = ordered_json::parse(trained().to_json(2, 1.0 / 7).dump(2));
  const ordered_json& step = back.at("log_history").at(0);
  EXPECT_EQ(back.at("epoch").get<double>(), 1.0 / 7);
  EXPECT_EQ(step.at("step"), 1);
  EXPECT_EQ(step.at("epoch").get<double>(), 1.0 / 3);
  EXPECT_EQ(step.at("loss").get<double>(), 3.5402980000000001);
  EXPECT_EQ(step.at("grad_norm").get<double>(), 0.1 + 0.2);
  EXPECT_EQ(step.at("learning_rate").get<double>(), 8.0 / 9600);
  EXPECT_EQ(step.at("num_trained_tokens"), 8);
  EXPECT_EQ(step.at("num_input_tokens_seen"), 100);
  EXPECT_FALSE(step.contains("weights_checksum"));
  const ordered_json& eval = back.at("log_history").at(1);
  EXPECT_EQ(eval.at("eval_loss").get<double>(), 2.0 / 3);
  EXPECT_EQ(eval.at("eval_runtime").get<double>(), 0.5);
  EXPECT_EQ(eval.at("step"), 2);
  EXPECT_EQ(eval.at("epoch"), 1.0);
}

TEST(TrainerStateTest, EvaluationWithoutTokensHasANoteAndNoNumber) {
  TrainerState state;
  state.on_eval({.step = 3, .epoch = 1, .loss = {}, .num_tokens = 0, .seconds = 0.5});
  const ordered_json entry = state.to_json(3, 1).at("log_history").at(0);
  EXPECT_EQ(entry.at("eval_note"), "no tokens");
  EXPECT_FALSE(entry.contains("eval_loss"));
}

TEST(TrainerStateTest, KeepsTheChecksumOfTheWeights) {
  TrainerState state;
  state.on_step({.step = 1, .weights_checksum = "0123456789abcdef"});
  EXPECT_EQ(state.to_json(1, 1).at("log_history").at(0).at("weights_checksum"), "0123456789abcdef");
}

TEST(TrainerStateTest, TheEndIsTheLastRecord) {
  TrainerState state = trained();
  state.on_end(
      {.steps = 6, .epoch = 3, .seconds = 9, .train_loss = 1.25, .num_input_tokens_seen = 900});
  const ordered_json json = state.to_json(6, 3);
  EXPECT_EQ(json.at("log_history").back().at("train_loss"), 1.25);
  EXPECT_EQ(json.at("log_history").back().at("train_runtime"), 9.0);
  EXPECT_EQ(json.at("num_input_tokens_seen"), 900);
}

TEST(TrainerStateTest, RestoreContinuesWhereTheCheckpointStopped) {
  TrainerState first = trained();
  first.set_best(2.0 / 3, "/project/checkpoint-2");
  const std::string file = first.to_json(2, 1).dump(2);

  TrainerState second;
  second.restore(ordered_json::parse(file));
  second.on_start({.total_updates = 6,
                   .num_epochs = 3,
                   .batch_size = 2,
                   .logging_steps = 1,
                   .save_steps = 500});
  EXPECT_EQ(second.best_metric(), 2.0 / 3);
  EXPECT_EQ(second.to_json(2, 1).dump(2), file);
  second.on_step({.step = 3, .epoch = 1.5, .loss = 1, .num_input_tokens_seen = 150});
  const ordered_json json = second.to_json(3, 1.5);
  EXPECT_EQ(json.at("log_history").size(), 3u);
  EXPECT_EQ(json.at("best_model_checkpoint"), "/project/checkpoint-2");
  EXPECT_EQ(json.at("num_input_tokens_seen"), 150);
}

TEST(TrainerStateTest, RestoreRefusesABrokenFileAndNamesTheKey) {
  const auto message_of = [](const char* text) -> std::string {
    TrainerState state;
    try {
      state.restore(ordered_json::parse(text));
    } catch (const UserError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(message_of("[]").find("log_history"), std::string::npos);
  EXPECT_NE(message_of("{}").find("log_history"), std::string::npos);
  EXPECT_NE(message_of(R"({"log_history": [1]})").find("log_history"), std::string::npos);
  EXPECT_NE(message_of(R"({"log_history": [], "best_metric": "low"})").find("best_metric"),
            std::string::npos);
  EXPECT_NE(message_of(R"({"log_history": [], "best_model_checkpoint": 3})")
                .find("best_model_checkpoint"),
            std::string::npos);
  EXPECT_EQ(message_of(R"({"log_history": []})"), "accepted");
}

}  // namespace
}  // namespace aitraining::report
