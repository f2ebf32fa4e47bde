#include "failure.h"

#include <csignal>
#include <filesystem>

#include <gtest/gtest.h>

#include "aitraining/core/files.h"

namespace aitraining::launch {
namespace {

RankEnd end(int rank, int code, int signal = 0, bool terminated = false, bool killed = false) {
  return {rank, {code, signal}, terminated, killed};
}

int culprit(const std::vector<RankEnd>& ends) {
  const auto failure = first_failure(ends);
  return failure ? failure->rank : -1;
}

TEST(FirstFailure, IsTheFirstOneOfItsOwn) {
  EXPECT_EQ(culprit({}), -1);
  EXPECT_EQ(culprit({end(0, 0), end(1, 0)}), -1);
  EXPECT_EQ(culprit({end(2, 1), end(0, 1, 0, true)}), 2);
  EXPECT_EQ(culprit({end(1, 0, SIGSEGV), end(0, 0, SIGTERM, true)}), 1);
}

TEST(FirstFailure, LosingAPeerIsNobodysOwnFault) {
  EXPECT_EQ(culprit({end(0, kExitPeerLost), end(1, 1, 0, true)}), 1);
  EXPECT_EQ(culprit({end(0, kExitPeerLost), end(1, 0, SIGKILL, true)}),
            1);  // killed by the system, slow to go
  EXPECT_EQ(culprit({end(0, kExitPeerLost), end(1, 0, SIGTERM, true)}),
            0);  // ended by us: the other is all there is
  EXPECT_EQ(culprit({end(0, kExitPeerLost), end(1, 0, SIGKILL, true, true)}), 0);
  EXPECT_EQ(culprit({end(0, kExitPeerLost), end(1, 143, 0, true)}), 0);
}

TEST(FirstFailure, ASignalFromOutsideCounts) {
  EXPECT_EQ(culprit({end(1, 0, SIGTERM, false), end(0, 0, SIGTERM, true)}), 1);
}

TEST(ExitCode, OfTheRun) {
  EXPECT_EQ(exit_code_of({0, 0}), 0);
  EXPECT_EQ(exit_code_of({2, 0}), 2);
  EXPECT_EQ(exit_code_of({1, 0}), 1);
  EXPECT_EQ(exit_code_of({77, 0}), 1);
  EXPECT_EQ(exit_code_of({kExitPeerLost, 0}), 1);
  EXPECT_EQ(exit_code_of({0, SIGKILL}), 137);
}

TEST(LastLines, OfALog) {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "aitraining-lines-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const std::filesystem::path file = std::filesystem::path(pattern) / "rank1.log";
  write_file_atomic(file, "one\ntwo\nthree\n\n");
  EXPECT_EQ(last_lines(file, 2), "two\nthree");
  EXPECT_EQ(last_lines(file, 1), "three");
  EXPECT_EQ(last_lines(file, 9), "one\ntwo\nthree");
  write_file_atomic(file, "");
  EXPECT_EQ(last_lines(file, 3), "");
  EXPECT_EQ(last_lines(std::filesystem::path(pattern) / "none", 3), "");
  std::filesystem::remove_all(pattern);
}

}  // namespace
}  // namespace aitraining::launch
