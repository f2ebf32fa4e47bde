// XXH64 after its public specification.
#include <algorithm>
#include <bit>
#include <cstring>

#include "aitraining/core/files.h"
#include "aitraining/core/strings.h"

namespace aitraining {
namespace {

constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87ull, kPrime2 = 0xC2B2AE3D27D4EB4Full,
                   kPrime3 = 0x165667B19E3779F9ull, kPrime4 = 0x85EBCA77C2B2AE63ull,
                   kPrime5 = 0x27D4EB2F165667C5ull;

static_assert(std::endian::native == std::endian::little, "lanes are read as little-endian words");

template <class Word>
uint64_t read(const unsigned char* p) {
  Word word;
  std::memcpy(&word, p, sizeof(word));
  return word;
}

uint64_t round(uint64_t accumulator, uint64_t lane) {
  return std::rotl(accumulator + lane * kPrime2, 31) * kPrime1;
}

uint64_t merge(uint64_t accumulator, uint64_t lane_accumulator) {
  return (accumulator ^ round(0, lane_accumulator)) * kPrime1 + kPrime4;
}

// The four lanes that whole stripes of 32 bytes run through.
struct Lanes {
  uint64_t a, b, c, d;
  explicit Lanes(uint64_t seed)
      : a(seed + kPrime1 + kPrime2), b(seed + kPrime2), c(seed), d(seed - kPrime1) {}

  // Consumes all whole stripes.
  void add(const unsigned char*& p, const unsigned char* end) {
    for (; end - p >= 32; p += 32) {
      a = round(a, read<uint64_t>(p));
      b = round(b, read<uint64_t>(p + 8));
      c = round(c, read<uint64_t>(p + 16));
      d = round(d, read<uint64_t>(p + 24));
    }
  }

  uint64_t merged() const {
    uint64_t h = std::rotl(a, 1) + std::rotl(b, 7) + std::rotl(c, 12) + std::rotl(d, 18);
    for (uint64_t lane : {a, b, c, d}) h = merge(h, lane);
    return h;
  }
};

uint64_t hash_tail(uint64_t h, const unsigned char* p, const unsigned char* end) {
  for (; end - p >= 8; p += 8)
    h = std::rotl(h ^ round(0, read<uint64_t>(p)), 27) * kPrime1 + kPrime4;
  for (; end - p >= 4; p += 4)
    h = std::rotl(h ^ (read<uint32_t>(p) * kPrime1), 23) * kPrime2 + kPrime3;
  for (; p < end; ++p) h = std::rotl(h ^ (*p * kPrime5), 11) * kPrime1;
  return h;
}

uint64_t avalanche(uint64_t h) {
  h = (h ^ (h >> 33)) * kPrime2;
  h = (h ^ (h >> 29)) * kPrime3;
  return h ^ (h >> 32);
}

}  // namespace

uint64_t hash64(const void* data, size_t bytes, uint64_t seed) {
  const auto* p = static_cast<const unsigned char*>(data);
  const unsigned char* end = p + bytes;
  Lanes lanes(seed);
  lanes.add(p, end);
  const uint64_t start = bytes >= 32 ? lanes.merged() : seed + kPrime5;
  return avalanche(hash_tail(start + bytes, p, end));
}

uint64_t hash_file(const std::filesystem::path& path) {
  if (std::filesystem::file_size(path) == 0) return hash64(nullptr, 0);
  constexpr size_t kPiece = size_t{4} << 20;  // whole stripes and whole pages
  const MappedFile file(path);
  const auto* p = reinterpret_cast<const unsigned char*>(file.bytes().data());
  const size_t bytes = file.bytes().size();
  const unsigned char* end = p + bytes;
  Lanes lanes(0);
  for (size_t begin = 0; begin < bytes; begin += kPiece) {
    lanes.add(p, std::min(p + kPiece, end));
    file.release(begin, std::min(kPiece, bytes - begin));
  }
  const uint64_t start = bytes >= 32 ? lanes.merged() : kPrime5;
  return avalanche(hash_tail(start + bytes, p, end));
}

}  // namespace aitraining
