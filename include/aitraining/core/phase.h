#pragma once
// What this process is doing ("update 12", "saving"): failures are reported with it.
#include <string>

namespace aitraining {

void enter_phase(std::string phase);
std::string current_phase();

}  // namespace aitraining
