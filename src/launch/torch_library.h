#pragma once
// Where LibTorch lies.
#include <filesystem>
#include <string>
#include <vector>

namespace aitraining::launch {

inline constexpr const char* kTorchVersion = "2.11";

struct TorchCandidate {
  std::string origin;             // who names it: a variable, or the build
  std::filesystem::path library;  // the folder that would hold libtorch_cpu.so
};

// In order of preference: AITRAINING_LIBTORCH alone when set; else the folder of the build, then
// the active environment.
std::vector<TorchCandidate> torch_candidates();
// The version of the LibTorch in `library`: torch/version.py of a wheel, or build-version of the
// zip; empty: unknown.
std::string torch_version(const std::filesystem::path& library);
// The first candidate with the right version; EnvironmentError telling what was found at each.
std::filesystem::path find_torch(const std::vector<TorchCandidate>& candidates);

}  // namespace aitraining::launch
