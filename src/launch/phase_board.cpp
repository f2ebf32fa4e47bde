#include "phase_board.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "aitraining/core/error.h"
#include "aitraining/core/phase.h"
#include "environment.h"

namespace aitraining::launch {
namespace {

char* map(int fd, size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}

}  // namespace

PhaseBoard::PhaseBoard(int ranks)
    : memory_(::memfd_create("phases", MFD_CLOEXEC)), bytes_(static_cast<size_t>(ranks) * kPhaseSlot) {
  if (memory_.valid() && ::ftruncate(memory_.get(), static_cast<off_t>(bytes_)) == 0) slots_ = map(memory_.get(), bytes_);
  if (slots_ == nullptr) throw EnvironmentError("cannot share memory with the ranks: {}", std::strerror(errno));
}

PhaseBoard::~PhaseBoard() {
  if (slots_ != nullptr) ::munmap(slots_, bytes_);
}

std::string PhaseBoard::phase(int local_rank) const {
  const char* slot = slots_ + static_cast<size_t>(local_rank) * kPhaseSlot;
  return {slot, ::strnlen(slot, kPhaseSlot - 1)};
}

void join_phase_board(int local_rank) {
  const auto fd = variable(kPhaseFdVariable);
  if (!fd) return;
  // It stays mapped for the life of the process.
  char* slots = map(whole_number(kPhaseFdVariable, *fd), static_cast<size_t>(local_rank + 1) * kPhaseSlot);
  if (slots != nullptr) show_phase_in(slots + static_cast<size_t>(local_rank) * kPhaseSlot);
}

}  // namespace aitraining::launch
