#pragma once
#include <filesystem>

#include <nlohmann/json.hpp>

namespace aitraining::launch {

// Versions of LibTorch and of the CUDA libraries beside it, out of their files: nothing is loaded.
// Names of what was not found are left out; "problem" when LibTorch itself was not.
nlohmann::ordered_json library_versions();
// The same for the LibTorch in `library`, torch/lib of a wheel.
nlohmann::ordered_json library_versions(const std::filesystem::path& library);

}  // namespace aitraining::launch
