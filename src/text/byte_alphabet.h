#pragma once
// The printable characters by which byte-level BPE writes bytes (GPT-2's table).
#include <array>
#include <string>
#include <string_view>

namespace aitraining::text {

// UTF-8 of the character for each byte.
const std::array<std::string, 256>& byte_alphabet();
// True when `token` consists of such characters only.
bool is_byte_spelled(std::string_view token);
// Each byte of `text` by its character.
std::string byte_spelled(std::string_view text);

}  // namespace aitraining::text
