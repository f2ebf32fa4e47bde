#pragma once
// One rank as a child process.
#include <sys/types.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "aitraining/launch/launch.h"
#include "file_descriptor.h"

namespace aitraining::launch {

struct RankProgram {
  std::string executable;
  std::vector<std::string> arguments;  // without the program's own name
};

// How a process ended.
struct ExitStatus {
  int code = 0;  // when signal is 0
  int signal = 0;
  bool success() const { return code == 0 && signal == 0; }
};

struct RankProcess {
  int rank = 0;
  pid_t pid = -1;                  // also the number of its process group
  FileDescriptor pidfd;            // readable once it ended; closed after that
  std::filesystem::path log_file;  // output of ranks other than 0; empty for rank 0
  ExitStatus status;
  bool running() const { return pidfd.valid(); }
};

struct RankSetup {
  RankEnvironment environment;
  int threads = 1;
  int phase_fd = -1;                 // see phase_board.h
  sigset_t signal_mask{};            // that the program starts with
  std::filesystem::path log_file{};  // empty: the parent's own output
};

// The environment of a rank: the parent's without anything that torchrun may have left, plus the
// rank's identity.
std::vector<std::string> rank_environment(const RankSetup& setup);
// Starts the program in a process group of its own; it dies when the parent dies. EnvironmentError
// when it can't.
RankProcess start_rank(const RankProgram& program, const RankSetup& setup);
// Collects the status of an ended process.
void collect(RankProcess& process);

}  // namespace aitraining::launch
