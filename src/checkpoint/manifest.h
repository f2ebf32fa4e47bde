#pragma once
#include <filesystem>
#include <optional>
#include <string>

namespace aitraining::checkpoint {

inline constexpr const char* kManifest = "manifest.json";

// Reads every file of `folder` again, and writes sizes and hashes to manifest.json, last.
void write_manifest(const std::filesystem::path& folder);
// What is wrong with the folder, naming the file; none when every file is as the manifest says.
std::optional<std::string> check_manifest(const std::filesystem::path& folder);

}  // namespace aitraining::checkpoint
