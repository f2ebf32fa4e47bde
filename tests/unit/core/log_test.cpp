#include "aitraining/core/log.h"

#include <unistd.h>

#include <filesystem>
#include <regex>

#include <gtest/gtest.h>

#include "aitraining/core/error.h"
#include "aitraining/core/files.h"

namespace aitraining {
namespace {
namespace fs = std::filesystem;

std::string g_hook_calls;

class Log : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "aitraining-log-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    log::init({});
    fs::remove_all(folder_);
  }
  fs::path folder_;
};

TEST_F(Log, TerminalShowsInfoAndAboveFileShowsAll) {
  const std::string file = (folder_ / "rank1.log").string();
  log::init({.file = file, .prefix = "rank 1: "});
  ::testing::internal::CaptureStderr();
  log::debug("hidden {}", 1);
  log::info("shown {}", 2);
  log::warn("careful");
  log::error("bad {{}}");
  const std::string terminal = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(terminal, "rank 1: shown 2\nwarning: rank 1: careful\nerror: rank 1: bad {}\n");
  const std::string written = read_file(file);
  const std::regex line(
      R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \| debug   \| rank 1: hidden 1\n)");
  EXPECT_TRUE(std::regex_search(written, line)) << written;
  EXPECT_EQ(std::count(written.begin(), written.end(), '\n'), 4);
}

TEST_F(Log, FileIsAppendedTo) {
  const std::string file = (folder_ / "a.log").string();
  for (int i = 0; i < 2; ++i) {
    log::init({.file = file, .terminal = false});
    log::info("run {}", i);
  }
  const std::string written = read_file(file);
  EXPECT_NE(written.find("run 0"), std::string::npos);
  EXPECT_NE(written.find("run 1"), std::string::npos);
}

TEST_F(Log, WithoutTerminalNothingIsPrinted) {
  log::init({.terminal = false});
  ::testing::internal::CaptureStderr();
  log::error("silent");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(Log, HookSurroundsEachTerminalLine) {
  log::init({});
  g_hook_calls.clear();
  log::set_terminal_hook([](bool before) { g_hook_calls += before ? '(' : ')'; });
  ::testing::internal::CaptureStderr();
  log::info("a");
  log::debug("not on the terminal");
  log::info("b");
  log::set_terminal_hook(nullptr);
  log::info("c");
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(g_hook_calls, "()()");
}

TEST_F(Log, FileThatCannotBeOpenedIsAnError) {
  fs::create_directory(folder_ / "taken");
  EXPECT_THROW(log::init({.file = (folder_ / "taken").string()}), EnvironmentError);
}

}  // namespace
}  // namespace aitraining
