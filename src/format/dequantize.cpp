// A fused multiply-add rounds once where the reference rounds twice.
#pragma GCC optimize("fp-contract=off")
#include "dequantize.h"

#include "aitraining/core/error.h"
#include "dtype.h"
#include "numbers.h"

namespace aitraining::format {
namespace {

using Bytes = const uint8_t*;

float half_at(Bytes at) { return half_to_float(static_cast<uint16_t>(at[0] | at[1] << 8)); }
uint32_t word_at(Bytes at) { return load<uint32_t>(reinterpret_cast<const std::byte*>(at)); }

// Blocks of 32: low nibbles are elements 0..15, high nibbles 16..31.
void q4_0(Bytes b, float* y) {
  const float d = half_at(b);
  for (int i = 0; i < 16; ++i) {
    y[i] = d * static_cast<float>((b[2 + i] & 15) - 8);
    y[i + 16] = d * static_cast<float>((b[2 + i] >> 4) - 8);
  }
}

void q4_1(Bytes b, float* y) {
  const float d = half_at(b), m = half_at(b + 2);
  for (int i = 0; i < 16; ++i) {
    y[i] = d * static_cast<float>(b[4 + i] & 15) + m;
    y[i + 16] = d * static_cast<float>(b[4 + i] >> 4) + m;
  }
}

// The fifth bit of element i is bit i of a 32-bit word.
int five_bits(Bytes quants, uint32_t high, int i) {
  const int low = i < 16 ? quants[i] & 15 : quants[i - 16] >> 4;
  return low | static_cast<int>(high >> i & 1u) << 4;
}

void q5_0(Bytes b, float* y) {
  const float d = half_at(b);
  const uint32_t high = word_at(b + 2);
  for (int i = 0; i < 32; ++i) y[i] = d * static_cast<float>(five_bits(b + 6, high, i) - 16);
}

void q5_1(Bytes b, float* y) {
  const float d = half_at(b), m = half_at(b + 2);
  const uint32_t high = word_at(b + 4);
  for (int i = 0; i < 32; ++i) y[i] = d * static_cast<float>(five_bits(b + 8, high, i)) + m;
}

void q8_0(Bytes b, float* y) {
  const float d = half_at(b);
  for (int i = 0; i < 32; ++i) y[i] = static_cast<float>(static_cast<int8_t>(b[2 + i])) * d;
}

// Super-blocks of 256. Element i of a packed field of `width` bits: runs of `run` elements share their bytes, each at
// its own shift.
int field(Bytes packed, int i, int run, int width) {
  const int per_byte = 8 / width;
  const int group = i / (run * per_byte), shift = i / run % per_byte * width;
  return packed[group * run + i % run] >> shift & ((1 << width) - 1);
}

void q2_k(Bytes b, float* y) {
  const Bytes scales = b, quants = b + 16;
  const float d = half_at(b + 80), dmin = half_at(b + 82);
  for (int s = 0; s < 16; ++s) {
    const float scale = d * static_cast<float>(scales[s] & 15), offset = dmin * static_cast<float>(scales[s] >> 4);
    for (int i = 16 * s; i < 16 * s + 16; ++i) y[i] = scale * static_cast<float>(field(quants, i, 32, 2)) - offset;
  }
}

void q3_k(Bytes b, float* y) {
  const Bytes high = b, quants = b + 32, scales = b + 96;
  const float d = half_at(b + 108);
  for (int s = 0; s < 16; ++s) {
    const int low4 = s < 8 ? scales[s] & 15 : scales[s - 8] >> 4;
    const int scale6 = low4 | (scales[8 + s % 4] >> s / 4 * 2 & 3) << 4;
    const float scale = d * static_cast<float>(scale6 - 32);
    for (int i = 16 * s; i < 16 * s + 16; ++i) {
      // The high bit is stored inverted: set means that nothing is taken off.
      const int q = field(quants, i, 32, 2) - (field(high, i, 32, 1) ? 0 : 4);
      y[i] = scale * static_cast<float>(q);
    }
  }
}

struct ScaleMin {
  int scale, min;
};
// Eight pairs of 6 bits in 12 bytes.
ScaleMin scale_min(Bytes p, int j) {
  if (j < 4) return {p[j] & 63, p[j + 4] & 63};
  return {(p[j + 4] & 15) | (p[j - 4] >> 6) << 4, p[j + 4] >> 4 | (p[j] >> 6) << 4};
}

void q4_k(Bytes b, float* y) {
  const float d = half_at(b), dmin = half_at(b + 2);
  for (int s = 0; s < 8; ++s) {
    const ScaleMin sm = scale_min(b + 4, s);
    const float scale = d * static_cast<float>(sm.scale), offset = dmin * static_cast<float>(sm.min);
    for (int i = 32 * s; i < 32 * s + 32; ++i) y[i] = scale * static_cast<float>(field(b + 16, i, 32, 4)) - offset;
  }
}

void q5_k(Bytes b, float* y) {
  const float d = half_at(b), dmin = half_at(b + 2);
  const Bytes high = b + 16, quants = b + 48;
  for (int s = 0; s < 8; ++s) {
    const ScaleMin sm = scale_min(b + 4, s);
    const float scale = d * static_cast<float>(sm.scale), offset = dmin * static_cast<float>(sm.min);
    for (int i = 32 * s; i < 32 * s + 32; ++i) {
      const int q = field(quants, i, 32, 4) | field(high, i, 32, 1) << 4;
      y[i] = scale * static_cast<float>(q) - offset;
    }
  }
}

void q6_k(Bytes b, float* y) {
  const Bytes low = b, high = b + 128, scales = b + 192;
  const float d = half_at(b + 208);
  for (int s = 0; s < 16; ++s) {
    const float scale = d * static_cast<float>(static_cast<int8_t>(scales[s]));
    for (int i = 16 * s; i < 16 * s + 16; ++i) {
      const int q = field(low, i, 64, 4) | field(high, i, 32, 2) << 4;
      y[i] = scale * static_cast<float>(q - 32);
    }
  }
}

using BlockFunction = void (*)(Bytes, float*);

BlockFunction block_function(DType dtype) {
  switch (dtype) {
    case DType::q4_0: return q4_0;
    case DType::q4_1: return q4_1;
    case DType::q5_0: return q5_0;
    case DType::q5_1: return q5_1;
    case DType::q8_0: return q8_0;
    case DType::q2_k: return q2_k;
    case DType::q3_k: return q3_k;
    case DType::q4_k: return q4_k;
    case DType::q5_k: return q5_k;
    case DType::q6_k: return q6_k;
    default: throw BugError("[format] {} is not a quantised type", dtype_name(dtype));
  }
}

}  // namespace

void dequantize_blocks(DType dtype, const std::byte* in, int64_t blocks, float* out) {
  const BlockFunction function = block_function(dtype);
  const BlockLayout layout = block_layout(dtype);
  const auto* bytes = reinterpret_cast<const uint8_t*>(in);
  for (int64_t i = 0; i < blocks; ++i) function(bytes + i * layout.bytes, out + i * layout.elements);
}

}  // namespace aitraining::format
