#include "aitraining/core/phase.h"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace aitraining {
namespace {

std::mutex mutex;
std::string phase = "start";
char* shown = nullptr;

void show() {
  if (shown == nullptr) return;
  const size_t length = std::min(phase.size(), kPhaseSlot - 1);
  shown[length] = 0;  // whoever reads in between finds an end
  std::memcpy(shown, phase.data(), length);
}

}  // namespace

void enter_phase(std::string entered) {
  const std::lock_guard lock(mutex);
  phase = std::move(entered);
  show();
}

std::string current_phase() {
  const std::lock_guard lock(mutex);
  return phase;
}

void show_phase_in(char* slot) {
  const std::lock_guard lock(mutex);
  shown = slot;
  show();
}

}  // namespace aitraining
