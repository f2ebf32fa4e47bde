// Values of every quantised type, computed independently with the Python package gguf 0.19.0 (gguf.quants.dequantize)
// from the same bytes: 8 blocks from a linear congruential generator, with the fp16 scales put in their places.
#include <gtest/gtest.h>

#include <bit>

#include "aitraining/format/gguf.h"
#include "format/dequantize.h"
#include "format/dtype.h"
#include "support/weight_files.h"

namespace aitraining::format {
namespace {

struct Vector {
  DType dtype;
  size_t elements;
  std::array<uint32_t, 4> bits;  // of elements 0, 7, 19 and the last
  uint64_t fnv1a;                // over the bytes of all elements
};
const Vector kVectors[] = {
    {DType::q4_0, 256, {0x3e999000u, 0x00000000u, 0xbf332800u, 0xc2fa2000u}, 0xf103b296b2db3c43u},
    {DType::q4_1, 256, {0x3f199000u, 0x3f999000u, 0x3f199000u, 0x427a2000u}, 0x3fd9fb6e7da5f857u},
    {DType::q5_0, 256, {0x3fb32800u, 0x3e4cc000u, 0x3f999000u, 0xc44b3a00u}, 0x8c2ad82d5893baedu},
    {DType::q5_1, 256, {0x3f199000u, 0x3ff32400u, 0x401ff600u, 0x427a2000u}, 0x9c4129a77ed518f8u},
    {DType::q8_0, 256, {0xc13b2780u, 0xc0b32800u, 0xc10b2a80u, 0xc508c980u}, 0x1931c8b64f8cdb8bu},
    {DType::q2_k, 2048, {0x3efff000u, 0x3fbff400u, 0x3f4cc000u, 0xc46a7e00u}, 0x5351c92249d7fb96u},
    {DType::q3_k, 2048, {0x3f999000u, 0xbf999000u, 0x40932a00u, 0x448cb200u}, 0xedbd8509795b4bb4u},
    {DType::q4_k, 2048, {0x41c65a00u, 0x42819180u, 0x41e65800u, 0xc4fa2000u}, 0xeeb808f1647c1539u},
    {DType::q5_k, 2048, {0x42b18e80u, 0x42a98f00u, 0x42432700u, 0xc5109a80u}, 0xd274b763e79771efu},
    {DType::q6_k, 2048, {0x432a0ef8u, 0xc2019180u, 0x41fbf040u, 0xc48cb200u}, 0xde8d322ce23d456bu},
};

std::vector<size_t> scale_offsets(DType dtype) {
  switch (dtype) {
    case DType::q2_k: return {80, 82};
    case DType::q3_k: return {108};
    case DType::q6_k: return {208};
    case DType::q4_0:
    case DType::q5_0:
    case DType::q8_0: return {0};
    default: return {0, 2};
  }
}

constexpr int64_t kBlocks = 8;

std::string block_bytes(DType dtype) {
  static constexpr uint16_t kHalves[] = {0x2E66, 0xB266, 0x0001, 0x3C00, 0x1234, 0x87FF, 0x0000, 0x53D1};
  const auto size = static_cast<size_t>(block_layout(dtype).bytes);
  std::string out;
  uint32_t state = 12345;
  size_t half = 0;
  for (int64_t block = 0; block < kBlocks; ++block) {
    std::string bytes;
    for (size_t i = 0; i < size; ++i) bytes += static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
    for (const size_t at : scale_offsets(dtype)) bytes.replace(at, 2, test::raw(kHalves[half++ % 8]));
    out += bytes;
  }
  return out;
}

uint64_t fnv1a(const std::vector<float>& values) {
  uint64_t hash = 0xcbf29ce484222325u;
  const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
  for (size_t i = 0; i < 4 * values.size(); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  return hash;
}

TEST(Dequantize, EqualsTheReferenceBitForBit) {
  for (const Vector& vector : kVectors) {
    SCOPED_TRACE(dtype_name(vector.dtype));
    const std::string bytes = block_bytes(vector.dtype);
    std::vector<float> out(static_cast<size_t>(kBlocks * block_layout(vector.dtype).elements));
    ASSERT_EQ(out.size(), vector.elements);
    dequantize_blocks(vector.dtype, reinterpret_cast<const std::byte*>(bytes.data()), kBlocks, out.data());
    EXPECT_EQ(std::bit_cast<uint32_t>(out[0]), vector.bits[0]);
    EXPECT_EQ(std::bit_cast<uint32_t>(out[7]), vector.bits[1]);
    EXPECT_EQ(std::bit_cast<uint32_t>(out[19]), vector.bits[2]);
    EXPECT_EQ(std::bit_cast<uint32_t>(out.back()), vector.bits[3]);
    EXPECT_EQ(fnv1a(out), vector.fnv1a);
  }
}

// By the format's own formula: w = d * q + m, elements 0..15 in the low nibbles, 16..31 in the high ones.
TEST(Dequantize, Q4_1ByHand) {
  std::string block = test::raw<uint16_t>(0x3800) + test::raw<uint16_t>(0xbc00);  // d = 0.5, m = -1
  for (int i = 0; i < 16; ++i) block += static_cast<char>(i | (15 - i) << 4);
  std::vector<float> out(32);
  dequantize_blocks(DType::q4_1, reinterpret_cast<const std::byte*>(block.data()), 1, out.data());
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(out[i], 0.5f * i - 1);
    EXPECT_EQ(out[i + 16], 0.5f * (15 - i) - 1);
  }
}

TEST(Dequantize, RangesMayBeginAndEndInsideABlock) {
  const test::TempDir folder;
  for (const Vector& vector : kVectors) {
    SCOPED_TRACE(dtype_name(vector.dtype));
    const std::string bytes = block_bytes(vector.dtype);
    const int64_t total = kBlocks * block_layout(vector.dtype).elements;
    std::vector<float> whole(static_cast<size_t>(total)), part(whole);
    dequantize_blocks(vector.dtype, reinterpret_cast<const std::byte*>(bytes.data()), kBlocks, whole.data());
    uint32_t type = 0;
    while (ggml_dtype(type) != vector.dtype) ++type;
    const auto file = folder.write(
        "x.gguf", test::GgufBuilder().tensor("w", {static_cast<uint64_t>(total)}, type, bytes).bytes());
    const auto store = GgufFile::open(file);
    for (const auto& [first, count] : std::vector<std::pair<int64_t, int64_t>>{
             {0, total}, {1, 5}, {31, 2}, {17, total - 17}, {total - 1, 1}, {5, total - 10}, {32, 32}, {total, 0}}) {
      std::fill(part.begin(), part.end(), -99.0f);
      store->read_f32(store->tensors().at("w"), first, count, part.data());
      EXPECT_EQ(std::memcmp(part.data(), whole.data() + first, 4 * static_cast<size_t>(count)), 0) << first << " " << count;
      if (count < total) {
        EXPECT_EQ(part[static_cast<size_t>(count)], -99.0f);
      }
    }
  }
}

}  // namespace
}  // namespace aitraining::format
