#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace aitraining {

// Damerau-Levenshtein distance (adjacent swaps count 1), case-insensitive, '-' equal to '_'.
int edit_distance(std::string_view a, std::string_view b);
// The nearest candidate if it is near enough to be what was meant.
std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates);

std::string human_bytes(uint64_t bytes);     // "1.5 GiB"
std::string human_duration(double seconds);  // "1:02:03" or "4.2 s"
std::string human_count(int64_t n);          // "134,515,008"
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string_view trim(std::string_view text);
std::vector<std::string> split(std::string_view text,
                               char separator);  // parts trimmed, empty ones dropped
std::string to_lower(std::string_view text);

// 64-bit hash (XXH64) of a byte range.
uint64_t hash64(const void* data, size_t bytes, uint64_t seed = 0);

}  // namespace aitraining
