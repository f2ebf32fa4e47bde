#include "byte_alphabet.h"

#include <cstdint>
#include <set>

namespace aitraining::text {
namespace {

// Bytes that are printable Latin-1 stand for themselves; the others get the code points from 256
// on, in order.
bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

std::string utf8_below_0x800(uint32_t code_point) {
  if (code_point < 0x80) return {static_cast<char>(code_point)};
  return {static_cast<char>(0xc0 | (code_point >> 6)),
          static_cast<char>(0x80 | (code_point & 0x3f))};
}

std::array<std::string, 256> make_alphabet() {
  std::array<std::string, 256> characters;
  uint32_t next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    characters[byte] = utf8_below_0x800(stands_for_itself(byte) ? byte : next++);
  }
  return characters;
}

}  // namespace

const std::array<std::string, 256>& byte_alphabet() {
  static const auto characters = make_alphabet();
  return characters;
}

bool is_byte_spelled(std::string_view token) {
  static const std::set<std::string, std::less<>> known(byte_alphabet().begin(),
                                                        byte_alphabet().end());
  for (size_t i = 0; i < token.size();) {
    const size_t length = static_cast<unsigned char>(token[i]) < 0x80 ? 1 : 2;
    if (!known.contains(token.substr(i, length))) return false;
    i += length;
  }
  return true;
}

std::string byte_spelled(std::string_view text) {
  std::string spelled;
  for (const char c : text) spelled += byte_alphabet()[static_cast<unsigned char>(c)];
  return spelled;
}

}  // namespace aitraining::text
