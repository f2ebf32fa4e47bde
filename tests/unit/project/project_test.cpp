// AutoTrainProject against a stand-in for the executable, which notes how it was started.
#include "aitraining/project.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "executable.h"

namespace aitraining {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

class Project : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"HF_TOKEN", "HF_USERNAME", "WANDB_API_KEY", "AUTOTRAIN_PROJECTS_DIR",
                             "AITRAINING_BIN", "AUTOTRAIN_FORCE_NUM_PROCESSES"})
      unsetenv(name);
    std::string pattern = (fs::temp_directory_path() / "aitraining-project-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    fs::create_directories(folder_ / "model");
    fs::create_directories(folder_ / "data");
    std::ofstream(folder_ / "data" / "train.jsonl") << "{\"text\": \"a\"}\n";
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path executable(const std::string& last, const std::string& folder = "bin") const {
    fs::create_directories(folder_ / folder);
    const fs::path file = folder_ / folder / "aitraining";
    std::ofstream(file) << "#!/bin/sh\ncd " << folder_.string()
                        << "\necho \"$@\" > words\ncat > input\nenv > variables\necho $$ > pid\n"
                        << last << "\n";
    fs::permissions(file, fs::perms::owner_all);
    return file;
  }
  void use(const std::string& last) const { setenv("AITRAINING_BIN", executable(last).c_str(), 1); }
  LLMTrainingParams params() const {
    LLMTrainingParams p;
    p.model = (folder_ / "model").string();
    p.data_path = (folder_ / "data").string();
    p.project_name = (folder_ / "project").string();
    p.device = "cpu";
    return p;
  }
  fs::path folder_;
};

TEST_F(Project, StartsAJobAndReturnsItsId) {
  use("exit 0");
  LLMTrainingParams p = params();
  p.lora_r = 8;
  const int job = AutoTrainProject(p, "local", true).create();
  EXPECT_EQ(content(folder_ / "words"), "--run-job\n");
  EXPECT_EQ(content(folder_ / "pid"), std::to_string(job) + "\n");
  const auto values = nlohmann::json::parse(content(folder_ / "input"));
  EXPECT_EQ(values, (nlohmann::json{{"model", p.model},
                                    {"data_path", p.data_path},
                                    {"project_name", p.project_name},
                                    {"device", "cpu"},
                                    {"lora_r", 8}}));
}

TEST_F(Project, SecretsGoByTheEnvironmentAlone) {
  use("exit 0");
  setenv("WANDB_API_KEY", "of-the-shell", 1);
  LLMTrainingParams p = params();
  p.token = "hf_secret";
  p.wandb_token = "wandb-secret";
  AutoTrainProject(p).create();
  EXPECT_EQ(content(folder_ / "input").find("secret"), std::string::npos);
  const std::string variables = "\n" + content(folder_ / "variables");
  EXPECT_NE(variables.find("\nHF_TOKEN=hf_secret\n"), std::string::npos);
  EXPECT_NE(variables.find("\nWANDB_API_KEY=wandb-secret\n"), std::string::npos);
  EXPECT_EQ(variables.find("of-the-shell"), std::string::npos);
}

TEST_F(Project, AFailureHasTheExitCode) {
  for (const auto& [last, code] :
       {std::pair("exit 1", 1), {"exit 3", 3}, {"kill -TERM $$", 128 + SIGTERM}}) {
    use(last);
    try {
      AutoTrainProject(params()).create();
      ADD_FAILURE() << last;
    } catch (const TrainingFailed& e) {
      EXPECT_EQ(e.code, code);
      EXPECT_EQ(e.what(), "Training failed with exit code: " + std::to_string(code));
    }
  }
}

TEST_F(Project, IsRefusedBeforeAnythingIsStarted) {
  use("exit 0");
  const auto refusal = [&](auto change, const std::string& backend = "local",
                           bool process = true) -> std::string {
    LLMTrainingParams p = params();
    change(p);
    try {
      AutoTrainProject(p, backend, process).create();
      return "accepted";
    } catch (const UserError& e) {
      return e.what();
    }
  };
  const auto nothing = [](LLMTrainingParams&) {};
  EXPECT_NE(refusal(nothing, "spaces-a10g").find("Invalid backend: spaces-a10g"),
            std::string::npos);
  EXPECT_NE(refusal(nothing, "local", false).find("process = false"), std::string::npos);
  const std::string both = refusal([](LLMTrainingParams& p) {
    p.lr = -1;
    p.trainer = "sfx";
  });
  EXPECT_NE(both.find("LLMTrainingParams.lr: -1.0 is out of range"), std::string::npos) << both;
  EXPECT_NE(both.find("Invalid trainer 'sfx'"), std::string::npos) << both;
  EXPECT_NE(refusal([](LLMTrainingParams& p) { p.data_path = "/nowhere"; }).find("/nowhere"),
            std::string::npos);
  EXPECT_NE(refusal([](LLMTrainingParams& p) { p.mixed_precision = "fp16"; }).find("fp16"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(folder_ / "words"));
  EXPECT_FALSE(fs::exists(folder_ / "project"));
}

TEST_F(Project, TheExecutableIsNamedFoundBesideOrOnPath) {
  const std::string path = std::getenv("PATH");
  const fs::path named = executable("exit 0", "named"), on_path = executable("exit 0", "on-path");
  setenv("PATH", ("/nowhere:" + on_path.parent_path().string()).c_str(), 1);
  const fs::path beside = fs::read_symlink("/proc/self/exe").parent_path() / "aitraining";
  EXPECT_EQ(project::find_executable(), fs::exists(beside) ? beside : on_path);
  setenv("AITRAINING_BIN", named.c_str(), 1);
  EXPECT_EQ(project::find_executable(), named);
  setenv("AITRAINING_BIN", "/nowhere/aitraining", 1);
  EXPECT_THROW(project::find_executable(), EnvironmentError);
  setenv("PATH", path.c_str(), 1);
}

}  // namespace
}  // namespace aitraining
