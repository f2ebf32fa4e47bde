#pragma once
// Which rank is to blame, and what is said about it.
#include <optional>
#include <string>
#include <vector>

#include "rank_process.h"

namespace aitraining::launch {

// An end, in the order in which it was seen, and whether we had asked the rank to end by then.
struct RankEnd {
  int rank;
  ExitStatus status;
  bool terminated = false;  // SIGTERM was sent before
  bool killed = false;      // SIGKILL was sent before
};

// The first failure that is a rank's own: neither our own signal, nor the loss of a peer (unless
// there is nothing else).
std::optional<RankEnd> first_failure(const std::vector<RankEnd>& ends);
int exit_code_of(const ExitStatus& status);
std::string describe_status(
    const ExitStatus& status);  // "exit code 1", "killed by signal 9 (Killed)"
std::string last_lines(const std::filesystem::path& file, int count);

}  // namespace aitraining::launch
