#include "torch_library.h"

#include <cstdlib>
#include <fstream>

#include <fmt/format.h>

#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"

namespace aitraining::launch {
namespace fs = std::filesystem;
namespace {

void add_environment(const char* variable, std::vector<TorchCandidate>& candidates) {
  const char* prefix = std::getenv(variable);
  if (!prefix || !*prefix) return;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(fs::path(prefix) / "lib", ignored)) {
    if (entry.path().filename().string().starts_with("python3")) {
      candidates.push_back({variable, entry.path() / "site-packages" / "torch" / "lib"});
    }
  }
}

bool has_torch(const fs::path& folder) {
  return fs::exists(folder / "libtorch_cpu.so");
}

}  // namespace

std::vector<TorchCandidate> torch_candidates() {
  std::vector<TorchCandidate> candidates;
  if (const char* named = std::getenv("AITRAINING_LIBTORCH"); named && *named) {
    for (const char* below : {"", "lib", "torch/lib"}) {
      candidates.push_back({"AITRAINING_LIBTORCH", (fs::path(named) / below).lexically_normal()});
    }
    return candidates;
  }
  candidates.push_back({"the build", AITRAINING_BUILT_TORCH_LIB});
  add_environment("VIRTUAL_ENV", candidates);
  add_environment("CONDA_PREFIX", candidates);
  return candidates;
}

std::string torch_version(const fs::path& library) {
  // "lib/" and "lib" have the same folder above them.
  const fs::path above = (library / ".").lexically_normal().parent_path().parent_path();
  std::ifstream python(above / "version.py");
  for (std::string line; std::getline(python, line);) {
    if (!line.starts_with("__version__")) continue;
    const size_t begin = line.find_first_of("'\""), end = line.find_last_of("'\"");
    if (begin < end) return line.substr(begin + 1, end - begin - 1);
  }
  std::ifstream zip(above / "build-version");
  std::string line;
  std::getline(zip, line);
  return std::string(trim(line));
}

fs::path find_torch(const std::vector<TorchCandidate>& candidates) {
  std::string looked;
  for (const TorchCandidate& candidate : candidates) {
    const std::string where =
        fmt::format("\n  {} ({})", candidate.library.string(), candidate.origin);
    if (!has_torch(candidate.library)) {
      looked += where + ": no libtorch_cpu.so";
      continue;
    }
    const std::string version = torch_version(candidate.library);
    if (version == kTorchVersion || version.starts_with(std::string(kTorchVersion) + "."))
      return candidate.library;
    looked += fmt::format("{}: version {}", where, version.empty() ? "unknown" : version);
  }
  throw EnvironmentError(
      "LibTorch {} was not found. Set AITRAINING_LIBTORCH to the folder with libtorch_cpu.so, or "
      "activate an environment that has torch {}. Looked in:{}",
      kTorchVersion, kTorchVersion, looked);
}

}  // namespace aitraining::launch
