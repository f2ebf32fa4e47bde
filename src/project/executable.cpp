#include "executable.h"

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"

namespace aitraining::project {
namespace fs = std::filesystem;
namespace {

bool is_executable(const fs::path& path) {
  return fs::is_regular_file(path) && ::access(path.c_str(), X_OK) == 0;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

fs::path find_executable() {
  if (const std::string given = variable("AITRAINING_BIN"); !given.empty()) {
    if (is_executable(given)) return fs::absolute(given);
    throw EnvironmentError("AITRAINING_BIN={} is no executable file: mend or unset it", given);
  }
  const fs::path beside = fs::read_symlink("/proc/self/exe").parent_path() / "aitraining";
  if (is_executable(beside)) return beside;
  for (const std::string& folder : split(variable("PATH"), ':')) {
    const fs::path candidate = fs::path(folder.empty() ? "." : folder) / "aitraining";
    if (is_executable(candidate)) return fs::absolute(candidate);
  }
  throw EnvironmentError(
      "the executable aitraining is neither {} nor in a folder of PATH: set AITRAINING_BIN to it",
      beside.string());
}

}  // namespace aitraining::project
