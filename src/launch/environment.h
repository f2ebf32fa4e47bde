#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aitraining/launch/launch.h"

namespace aitraining::launch {

// A variable that is set and not empty.
std::optional<std::string> variable(const std::string& name);
// UserError naming the variable when its text is no whole number.
int whole_number(const std::string& name, const std::string& text);
// Variables that tell a rank process who it is; read_rank_environment reads them.
std::vector<std::pair<std::string, std::string>> rank_identity(const RankEnvironment& rank);

// Variables by which torchrun, accelerate and we ourselves tell a rank who it is.
const std::vector<std::string>& rank_variables();
// Whether something else's rank variables are left in the environment; MASTER_PORT belongs to them
// then.
bool has_leftovers();
// The port that PyTorch and accelerate use when none is given.
inline constexpr int kUsualPort = 29500;
inline constexpr const char* kStoreFdVariable = "AITRAINING_STORE_FD";
// The memory in which the launcher reads what its ranks are doing.
inline constexpr const char* kPhaseFdVariable = "AITRAINING_PHASE_FD";
// Set when another process serves the store: the prefix of its keys.
inline constexpr const char* kStorePrefixVariable = "AITRAINING_STORE_PREFIX";

}  // namespace aitraining::launch
