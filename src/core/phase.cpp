#include "aitraining/core/phase.h"

#include <mutex>

namespace aitraining {
namespace {

std::mutex mutex;
std::string phase = "start";

}  // namespace

void enter_phase(std::string entered) {
  const std::lock_guard lock(mutex);
  phase = std::move(entered);
}

std::string current_phase() {
  const std::lock_guard lock(mutex);
  return phase;
}

}  // namespace aitraining
