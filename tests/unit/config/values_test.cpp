// Values by name, as programs give them.
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "config_test_support.h"
#include "field_table.h"

namespace aitraining::config {
namespace {

using Json = nlohmann::ordered_json;

class Values : public ConfigTest {
 protected:
  static Json base() { return {{"model", "./m"}, {"data_path", "./d"}, {"project_name", "demo"}}; }
  static ResolvedConfig accepted(Json more) {
    Json values = base();
    values.update(more);
    return resolve_values(values, "params");
  }
  static std::string refused(Json more) {
    try {
      accepted(std::move(more));
    } catch (const UserError& e) {
      return e.what();
    }
    return "accepted";
  }
};

TEST_F(Values, AreThoseOfTheCommandLine) {
  const ResolvedConfig by_values = accepted({{"lr", 1},
                                             {"peft", true},
                                             {"target_modules", {"q_proj", "v_proj"}},
                                             {"valid_split", nullptr},
                                             {"mixed_precision", "no"},
                                             {"padding", nullptr}});
  const ResolvedConfig by_flags = resolved(
      llm({"--lr", "1", "--peft", "--target-modules", "q_proj,v_proj", "--padding", "none"}));
  EXPECT_EQ(to_json(by_values.params), to_json(by_flags.params));
  EXPECT_EQ(by_values.origin("lr").text(), "params");
  EXPECT_EQ(by_values.origin("seed").text(), "default");
  EXPECT_EQ(by_values.params.project_name, std::filesystem::absolute("demo").string());
}

TEST_F(Values, EveryProblemIsNamed) {
  const std::string message = refused({{"lr", "fast"},
                                       {"batch_size", 0},
                                       {"peft", 1},
                                       {"epochs", 1.5},
                                       {"learning_rate", 1},
                                       {"bacth_size", 2},
                                       {"lora_r", {1, 2}},
                                       {"target_modules", {1, 2}}});
  EXPECT_HAS(message, "8 problems");
  EXPECT_HAS(message, "params.lr: 'fast' is not a number");
  EXPECT_HAS(message, "params.batch_size: 0 is out of range: batch_size is 1 or more");
  EXPECT_HAS(message, "params.peft: '1' is not true or false");
  EXPECT_HAS(message, "params.epochs: '1.5' is not a whole number");
  EXPECT_HAS(message, "params: unknown parameter 'learning_rate'; did you mean 'lr'?");
  EXPECT_HAS(message, "params: unknown parameter 'bacth_size'; did you mean 'batch_size'?");
  EXPECT_HAS(message, "params.lora_r: '[1,2]' is not a whole number");
  EXPECT_HAS(message, "params.target_modules: a list of texts is due");
}

TEST_F(Values, WhatIsNotThereIsRefusedAsFromTheCommandLine) {
  EXPECT_HAS(refused({{"quantization", "int4"}, {"peft", true}}),
             "not supported yet in this build: quantization");
  EXPECT_HAS(refused({{"trainer", "dpo"}}), "prompt_text_column");
  try {
    resolve_values(Json::object(), "params");
    FAIL() << "accepted";
  } catch (const UserError& e) {
    for (const char* said : {"Model must be specified", "Data path must be specified",
                             "Project name must be specified"})
      EXPECT_HAS(e.what(), said);
  }
}

TEST_F(Values, ChangedOnesMakeTheSameParametersAgain) {
  TrainingParams params = default_params();
  EXPECT_EQ(changed_values(params, Secrets::kept), Json::object());
  params.model = "m";
  params.data_path = "d";
  params.project_name = "/p";
  params.lr = 1e-3;
  params.packing = false;
  params.token = "hf_x";
  const Json all = changed_values(params, Secrets::kept);
  const nlohmann::json expected{{"model", "m"},     {"data_path", "d"}, {"project_name", "/p"},
                                {"packing", false}, {"lr", 1e-3},       {"token", "hf_x"}};
  EXPECT_EQ(nlohmann::json(all), expected);
  EXPECT_FALSE(changed_values(params, Secrets::left_out).contains("token"));
  const TrainingParams again = resolve_values(all, "params").params;
  EXPECT_EQ(to_json(again), to_json(params));
  EXPECT_EQ(again.token, "hf_x");
}

TEST_F(Values, SecretsHaveAVariableEach) {
  TrainingParams params = default_params();
  EXPECT_TRUE(secret_environment(params).empty());
  params.token = "hf_x";
  params.wandb_token = "w";
  EXPECT_EQ(secret_environment(params), (StringMap{{"HF_TOKEN", "hf_x"}, {"WANDB_API_KEY", "w"}}));
  for (const Field& field : field_table()) {
    if (field.secret) EXPECT_FALSE(field.environment.empty()) << field.name;
  }
  const std::string message = refused({{"token", {"hf_x"}}});
  EXPECT_HAS(message, "params.token: a text is due");
  EXPECT_FALSE(has(message, "hf_x"));
}

// Standard input is a file here, as it is a pipe in use.
TEST_F(Values, AJobReadsThemFromStandardInput) {
  const int saved = ::dup(STDIN_FILENO);
  const auto job = [&](const std::string& text) {
    EXPECT_NE(std::freopen(write(text, "input").c_str(), "r", stdin), nullptr);
    std::cin.clear();
    return parse_command_line({"--run-job"});
  };
  const Command command = job(R"({"model":"m","data_path":"d","project_name":"p","lora_r":4})");
  EXPECT_EQ(command.kind, Command::Kind::job);
  EXPECT_EQ(command.config.params.lora_r, 4);
  for (const char* text : {"", "[1]", "{\"model\":", "{} {}"})
    EXPECT_THROW(job(text), UserError) << text;
  EXPECT_HAS(refusal({"--run-job", "file"}), "takes no argument");
  ::dup2(saved, STDIN_FILENO);
  ::close(saved);
}

}  // namespace
}  // namespace aitraining::config
