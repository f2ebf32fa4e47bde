#pragma once
// A temporary folder, configuration files in it, and the message of a command line that is refused.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "aitraining/config/config.h"
#include "aitraining/core/error.h"

namespace aitraining::config {

class ConfigTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"HF_TOKEN", "HF_USERNAME", "WANDB_API_KEY", "AUTOTRAIN_PROJECTS_DIR"})
      unsetenv(name);
    std::string pattern =
        (std::filesystem::temp_directory_path() / "aitraining-config-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& content, const std::string& name = "run.yaml") const {
    const auto path = folder_ / name;
    std::ofstream(path) << content;
    return path.string();
  }
  // A whole file whose `params` section is `params` (lines indented by two blanks, the first on
  // line 11).
  std::string write_params(const std::string& params) const {
    return write(
        "task: llm-sft\nbackend: local\nbase_model: ./model\nproject_name: demo\ndata:\n  path: "
        "./data\n"
        "  train_split: train\n  valid_split: null\nlog: none\nparams:\n" +
        params);
  }
  std::filesystem::path folder_;
};

inline std::vector<std::string> llm(std::vector<std::string> more) {
  std::vector<std::string> all{"llm",         "--train", "--model",        "./m",
                               "--data-path", "./d",     "--project-name", "demo"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

inline ResolvedConfig resolved(const std::vector<std::string>& arguments) {
  Command command = parse_command_line(arguments);
  EXPECT_EQ(command.kind, Command::Kind::train);
  return command.config;
}

inline TrainingParams params_of(const std::vector<std::string>& arguments) {
  return resolved(arguments).params;
}

inline std::string refusal(const std::vector<std::string>& arguments) {
  try {
    parse_command_line(arguments);
  } catch (const UserError& e) {
    EXPECT_EQ(e.exit_code(), 2);
    return e.what();
  }
  return "accepted";
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

#define EXPECT_HAS(text, part)                             \
  do {                                                     \
    const std::string text_of_ = (text);                   \
    EXPECT_TRUE(::aitraining::config::has(text_of_, part)) \
        << "without: " << (part) << "\nin: " << text_of_;  \
  } while (false)

}  // namespace aitraining::config
