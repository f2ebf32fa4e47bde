#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace aitraining::launch {

// Where accelerate keeps its default configuration; none: there is none.
std::optional<std::filesystem::path> accelerate_default_file();
// Its lines, without comments and empty ones, at most 20.
std::vector<std::string> accelerate_lines(const std::filesystem::path& file);

}  // namespace aitraining::launch
