#pragma once
// Memory that the launcher shares with its ranks: one line each about what the rank is doing.
#include <string>

#include "file_descriptor.h"

namespace aitraining::launch {

class PhaseBoard {
 public:
  explicit PhaseBoard(int ranks);  // EnvironmentError when the system gives no memory
  ~PhaseBoard();
  PhaseBoard(const PhaseBoard&) = delete;
  int descriptor() const { return memory_.get(); }
  std::string phase(int local_rank) const;  // empty before the rank has said anything

 private:
  FileDescriptor memory_;
  char* slots_ = nullptr;
  size_t bytes_ = 0;
};

// In a rank: shows its phases on the board that the environment names, if any.
void join_phase_board(int local_rank);

}  // namespace aitraining::launch
