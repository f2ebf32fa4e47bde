#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace aitraining::config {

struct BadCharacter {
  size_t at;
  std::string what;  // "the control character 0x04", "bytes that are not UTF-8"
};
// The first character that no text of a configuration may hold; blanks, tabs and ends of lines are
// fine.
std::optional<BadCharacter> find_bad_character(std::string_view text);

}  // namespace aitraining::config
