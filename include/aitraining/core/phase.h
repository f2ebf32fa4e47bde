#pragma once
// What this process is doing ("update 12", "saving"): failures are reported with it.
#include <cstddef>
#include <string>

namespace aitraining {

void enter_phase(std::string phase);
std::string current_phase();

// Writes every phase into `slot` too, as text that ends with a zero: memory that the launcher shares, so that it can tell
// what a rank was doing that was killed.
constexpr size_t kPhaseSlot = 128;
void show_phase_in(char* slot);

}  // namespace aitraining
