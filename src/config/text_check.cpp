#include "text_check.h"

#include <fmt/format.h>

namespace aitraining::config {
namespace {

// Bytes of the well-formed UTF-8 character that begins at `at`; 0: there is none.
size_t character_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned lead = byte(at);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xC2 && lead < 0xE0   ? 2
                        : lead >= 0xE0 && lead < 0xF0 ? 3
                        : lead >= 0xF0 && lead < 0xF5 ? 4
                                                      : 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
  }
  const unsigned second = byte(at + 1);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool surrogate = lead == 0xED && second >= 0xA0;
  const bool beyond = lead == 0xF4 && second >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

}  // namespace

std::optional<BadCharacter> find_bad_character(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const auto c = static_cast<unsigned char>(text[at]);
    const bool blank = c == '\t' || c == '\n' || c == '\r';
    if ((c < 0x20 && !blank) || c == 0x7F)
      return BadCharacter{at, fmt::format("the control character 0x{:02x}", c)};
    const size_t length = character_length(text, at);
    if (length == 0) return BadCharacter{at, "bytes that are not UTF-8"};
    at += length;
  }
  return std::nullopt;
}

}  // namespace aitraining::config
