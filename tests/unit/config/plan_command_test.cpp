// `plan` and `env` on the command line.
#include <gtest/gtest.h>

#include <algorithm>

#include "aitraining/config/config.h"
#include "config_test_support.h"

namespace aitraining::config {
namespace {

using Words = std::vector<std::string>;

Command plan_of(Words words, const Words& before = {}) {
  Words all{"plan"};
  all.insert(all.end(), before.begin(), before.end());
  const Words given{"llm", "--model", "m", "--data-path", "d", "--project-name", "p"};
  all.insert(all.end(), given.begin(), given.end());
  all.insert(all.end(), words.begin(), words.end());
  return parse_command_line(all);
}

std::string error_of(const Words& words) {
  try {
    parse_command_line(words);
  } catch (const UserError& e) {
    return e.what();
  }
  return "accepted";
}

TEST(PlanCommand, ItsOwnFlagsStandAnywhere) {
  Command command = plan_of({"--json", "--lr", "1e-4"}, {"--assume-devices", "4"});
  EXPECT_EQ(command.kind, Command::Kind::plan);
  EXPECT_TRUE(command.plan.json);
  EXPECT_FALSE(command.plan.explain);
  EXPECT_EQ(command.plan.assumed_devices, "4");
  EXPECT_EQ(command.config.params.lr, 1e-4);
  command = plan_of({"--train", "--assume_devices=8x80GiB", "--explain"});
  EXPECT_EQ(command.plan.assumed_devices, "8x80GiB");
  EXPECT_TRUE(command.plan.explain);
}

TEST(PlanCommand, WrongWordsAreErrorsAsInTraining) {
  EXPECT_NE(error_of({"plan", "llm", "--modle", "m"}).find("did you mean --model"),
            std::string::npos);
  EXPECT_NE(error_of({"plan", "llm", "--assume-devices"}).find("--assume-devices needs a value"),
            std::string::npos);
  EXPECT_NE(error_of({"plan", "lmm"}).find("did you mean 'llm'"), std::string::npos);
  EXPECT_NE(error_of({"plan", "llm"}).find("Model must be specified"), std::string::npos);
}

TEST(PlanCommand, WhatTrainingRefusesIsListed) {
  const Command command = parse_command_line(
      {"plan", "seq2seq", "--model", "m", "--data-path", "d", "--project-name", "p"});
  EXPECT_EQ(command.config.task, Task::seq2seq);
  ASSERT_FALSE(command.config.unsupported.empty());
  EXPECT_NE(command.config.unsupported.back().find("task seq2seq"), std::string::npos);
  EXPECT_TRUE(plan_of({}).config.unsupported.empty());
}

TEST(PlanCommand, EveryParameterIsExplained) {
  const Command command = plan_of({"--batch-size", "7", "--token", "hf_SECRET"});
  const auto values = explain(command.config);
  const auto find = [&](const std::string& name) {
    return *std::ranges::find_if(values, [&](const auto& v) { return v.name == name; });
  };
  EXPECT_EQ(find("batch_size").value, "7");
  EXPECT_EQ(find("batch_size").origin, "flag --batch-size");
  EXPECT_EQ(find("epochs").origin, "default");
  EXPECT_EQ(find("token").value, "***");
}

TEST(EnvironmentCommand, BothSpellings) {
  EXPECT_EQ(parse_command_line({"env"}).kind, Command::Kind::environment);
  const Command command =
      parse_command_line({"accelerate", "env", "--json", "--config_file", "a.yaml"});
  EXPECT_EQ(command.kind, Command::Kind::environment);
  EXPECT_TRUE(command.environment.json);
  EXPECT_EQ(command.environment.config_file, "a.yaml");
  EXPECT_EQ(parse_command_line({"env", "--config-file=b.yaml"}).environment.config_file, "b.yaml");
  EXPECT_NE(error_of({"env", "--jsn"}).find("--jsn"), std::string::npos);
  EXPECT_NE(error_of({"accelerate", "launch"}).find("only `accelerate env`"), std::string::npos);
}

}  // namespace
}  // namespace aitraining::config
