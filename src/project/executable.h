#pragma once
#include <filesystem>

namespace aitraining::project {

// The `aitraining` executable: AITRAINING_BIN, else beside this program, else the first on PATH.
// EnvironmentError that lists where it was looked for.
std::filesystem::path find_executable();

}  // namespace aitraining::project
