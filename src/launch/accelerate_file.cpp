#include "accelerate_file.h"

#include <cstdlib>
#include <fstream>

#include "aitraining/core/strings.h"

namespace aitraining::launch {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMostLines = 20;

std::optional<fs::path> below(const char* variable, const fs::path& folder) {
  const char* value = std::getenv(variable);
  if (!value || !*value) return std::nullopt;
  return fs::path(value) / folder;
}

}  // namespace

std::optional<fs::path> accelerate_default_file() {
  auto folder = below("HF_HOME", "accelerate");
  if (!folder) folder = below("XDG_CACHE_HOME", "huggingface/accelerate");
  if (!folder) folder = below("HOME", ".cache/huggingface/accelerate");
  if (!folder) return std::nullopt;
  for (const char* name : {"default_config.yaml", "default_config.json"}) {
    std::error_code ignored;
    if (fs::is_regular_file(*folder / name, ignored)) return *folder / name;
  }
  return std::nullopt;
}

std::vector<std::string> accelerate_lines(const fs::path& file) {
  std::ifstream stream(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line) && lines.size() < kMostLines;) {
    const std::string text(trim(line));
    if (!text.empty() && text[0] != '#') lines.push_back(line);
  }
  return lines;
}

}  // namespace aitraining::launch
