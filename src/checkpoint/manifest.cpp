#include "manifest.h"

#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>

#include "aitraining/core/error.h"
#include "aitraining/core/files.h"
#include "aitraining/core/strings.h"

namespace aitraining::checkpoint {
namespace fs = std::filesystem;
namespace {

constexpr int kVersion = 1;

std::string file_hash(const fs::path& path) { return fmt::format("{:016x}", hash_file(path)); }

std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) names.push_back(fs::relative(entry.path(), folder).string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<std::string> check_entries(const fs::path& folder, const nlohmann::json& manifest) {
  for (const auto& [name, entry] : manifest.at("files").items()) {
    const fs::path path = folder / name;
    if (!fs::is_regular_file(path)) return fmt::format("{} is missing", path.string());
    const auto bytes = entry.at("bytes").get<uint64_t>();
    if (fs::file_size(path) != bytes) {
      return fmt::format("{} has {} bytes, {} were written", path.string(), fs::file_size(path), bytes);
    }
    if (file_hash(path) != entry.at("xxh64").get<std::string>()) {
      return fmt::format("{} was changed since it was written", path.string());
    }
  }
  return std::nullopt;
}

}  // namespace

void write_manifest(const fs::path& folder) {
  nlohmann::ordered_json files = nlohmann::ordered_json::object();
  for (const auto& name : files_in(folder)) {
    files[name] = {{"bytes", fs::file_size(folder / name)}, {"xxh64", file_hash(folder / name)}};
  }
  const nlohmann::ordered_json manifest = {{"version", kVersion}, {"files", files}};
  write_file_atomic(folder / kManifest, manifest.dump(2) + "\n");
}

std::optional<std::string> check_manifest(const fs::path& folder) {
  const fs::path path = folder / kManifest;
  if (!fs::is_regular_file(path)) return fmt::format("{} is missing: it was not written whole", path.string());
  try {
    const auto manifest = nlohmann::json::parse(read_file(path));
    if (manifest.at("version").get<int>() != kVersion) return fmt::format("{} is of another version", path.string());
    return check_entries(folder, manifest);
  } catch (const nlohmann::json::exception& e) {
    return fmt::format("{} is damaged ({})", path.string(), e.what());
  }
}

}  // namespace aitraining::checkpoint
