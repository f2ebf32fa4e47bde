#pragma once
#include <string>
#include <vector>

namespace aitraining::launch {

// Variables by which torchrun, accelerate and we ourselves tell a rank who it is.
const std::vector<std::string>& rank_variables();
// Whether something else's rank variables are left in the environment; MASTER_PORT belongs to them
// then.
bool has_leftovers();
inline constexpr const char* kStoreFdVariable = "AITRAINING_STORE_FD";

}  // namespace aitraining::launch
