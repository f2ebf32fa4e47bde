#include "torch_library.h"

#include <unistd.h>

#include <cstdlib>

#include <gtest/gtest.h>

#include "aitraining/core/error.h"
#include "aitraining/core/files.h"

namespace aitraining::launch {
namespace {
namespace fs = std::filesystem;

class TorchLibrary : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "aitraining-torch-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    for (const char* name : {"AITRAINING_LIBTORCH", "VIRTUAL_ENV", "CONDA_PREFIX"}) unsetenv(name);
  }
  void TearDown() override {
    for (const char* name : {"AITRAINING_LIBTORCH", "VIRTUAL_ENV", "CONDA_PREFIX"}) unsetenv(name);
    fs::remove_all(root_);
  }
  // A wheel's torch folder with an empty library.
  fs::path wheel(const std::string& site, const std::string& version) {
    const fs::path torch = root_ / site / "torch";
    fs::create_directories(torch / "lib");
    write_file_atomic(torch / "lib" / "libtorch_cpu.so", "");
    write_file_atomic(torch / "version.py", "from typing import Optional\n__version__ = '" +
                                                version + "'\ndebug = False\n");
    return torch / "lib";
  }
  std::string refusal(const std::vector<TorchCandidate>& candidates) {
    try {
      find_torch(candidates);
    } catch (const EnvironmentError& e) {
      return e.what();
    }
    return "found";
  }
  fs::path root_;
};

TEST_F(TorchLibrary, VersionOfWheelAndZip) {
  EXPECT_EQ(torch_version(wheel("a", "2.11.0+cu130")), "2.11.0+cu130");
  EXPECT_EQ(torch_version(wheel("a", "2.11.0") / ""), "2.11.0");
  fs::create_directories(root_ / "zip" / "lib");
  write_file_atomic(root_ / "zip" / "build-version", "2.11.0+cpu\n");
  EXPECT_EQ(torch_version(root_ / "zip" / "lib"), "2.11.0+cpu");
  EXPECT_EQ(torch_version(root_ / "none"), "");
}

TEST_F(TorchLibrary, FirstOfTheRightVersionIsTaken) {
  const fs::path old = wheel("old", "2.9.1"), longer = wheel("longer", "2.110.0"),
                 good = wheel("good", "2.11.0+cu130");
  EXPECT_EQ(find_torch({{"a", root_ / "none"}, {"b", old}, {"c", longer}, {"d", good}}), good);
}

TEST_F(TorchLibrary, FailureTellsWhatWasFoundWhere) {
  const fs::path old = wheel("old", "2.9.1");
  const std::string message = refusal({{"the build", root_ / "none"}, {"VIRTUAL_ENV", old}});
  EXPECT_NE(message.find((root_ / "none").string() + " (the build): no libtorch_cpu.so"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find(old.string() + " (VIRTUAL_ENV): version 2.9.1"), std::string::npos)
      << message;
  EXPECT_NE(message.find("Set AITRAINING_LIBTORCH"), std::string::npos) << message;
}

TEST_F(TorchLibrary, CandidatesComeFromVariablesThenBuildThenEnvironment) {
  const fs::path good = wheel("env/lib/python3.11/site-packages", "2.11.0");
  setenv("VIRTUAL_ENV", (root_ / "env").c_str(), 1);
  auto candidates = torch_candidates();
  ASSERT_EQ(candidates.size(), 2u);
  EXPECT_EQ(candidates[0].origin, "the build");
  EXPECT_EQ(candidates[1].library, good);
  setenv("AITRAINING_LIBTORCH", good.parent_path().parent_path().c_str(), 1);
  EXPECT_EQ(find_torch(torch_candidates()), good);
  for (const auto& candidate : torch_candidates())
    EXPECT_EQ(candidate.origin, "AITRAINING_LIBTORCH");
}

}  // namespace
}  // namespace aitraining::launch
