#include "element_reader.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "aitraining/core/error.h"
#include "dequantize.h"
#include "dtype.h"
#include "numbers.h"

namespace aitraining::format {
namespace {

// Elements handled at once: a multiple of every block, small enough for the converted values to stay in the cache.
constexpr int64_t kChunk = 8192;
// A read of more than this gives its pages back as it goes on; smaller ones would only fault them in again.
constexpr uint64_t kReleaseBytes = 1u << 20;

template <class T>
void convert(const std::byte* in, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(load<T>(in + i * sizeof(T)));
}

void convert_plain(DType dtype, const std::byte* in, int64_t count, float* out) {
  switch (dtype) {
    case DType::f32: std::memcpy(out, in, count * sizeof(float)); return;
    case DType::f16:
      for (int64_t i = 0; i < count; ++i) out[i] = half_to_float(load<uint16_t>(in + 2 * i));
      return;
    case DType::bf16:
      for (int64_t i = 0; i < count; ++i) out[i] = bf16_to_float(load<uint16_t>(in + 2 * i));
      return;
    case DType::f64: return convert<double>(in, count, out);
    case DType::i64: return convert<int64_t>(in, count, out);
    case DType::i32: return convert<int32_t>(in, count, out);
    case DType::i16: return convert<int16_t>(in, count, out);
    case DType::i8: return convert<int8_t>(in, count, out);
    case DType::u8:
    case DType::boolean: return convert<uint8_t>(in, count, out);
    default: throw BugError("[format] {} is not a plain type", dtype_name(dtype));
  }
}

// Elements [first, first + count) of a quantised tensor; a block that is needed in part goes through a side buffer.
void convert_blocks(DType dtype, const std::byte* base, int64_t first, int64_t count, float* out) {
  const BlockLayout layout = block_layout(dtype);
  std::array<float, 256> side;
  while (count > 0) {
    const int64_t block = first / layout.elements, inside = first % layout.elements;
    const std::byte* in = base + block * layout.bytes;
    int64_t done = 0;
    if (inside == 0 && count >= layout.elements) {
      done = count / layout.elements * layout.elements;
      dequantize_blocks(dtype, in, count / layout.elements, out);
    } else {
      done = std::min(count, layout.elements - inside);
      dequantize_blocks(dtype, in, 1, side.data());
      std::copy_n(side.data() + inside, done, out);
    }
    first += done;
    out += done;
    count -= done;
  }
}

void convert_range(const Extent& extent, int64_t first, int64_t count, float* out) {
  const std::byte* base = extent.file->bytes().data() + extent.offset;
  if (is_quantized(extent.dtype)) return convert_blocks(extent.dtype, base, first, count, out);
  convert_plain(extent.dtype, base + first * block_layout(extent.dtype).bytes, count, out);
}

// Calls body(first, count) for pieces of the range, and gives pages back behind it.
template <class Body>
void for_chunks(const Extent& extent, int64_t first, int64_t count, Body&& body) {
  AIT_CHECK(first >= 0 && count >= 0 && first <= extent.elements && count <= extent.elements - first,
            "elements [{}, {}+{}) of {} in {}", first, first, count, extent.elements, extent.file->path().string());
  const BlockLayout layout = block_layout(extent.dtype);
  const auto offset_of = [&](int64_t element) {
    return extent.offset + static_cast<uint64_t>(element / layout.elements * layout.bytes);
  };
  const uint64_t begin = offset_of(first);
  uint64_t released = begin;
  for (const int64_t end = first + count; first < end;) {
    const int64_t step = std::min(end - first, kChunk);
    body(first, step);
    first += step;
    const uint64_t now = offset_of(first);
    if (now - released < kReleaseBytes) continue;
    extent.file->release(released, now - released);
    released = now;
  }
  if (released != begin) extent.file->release(released, offset_of(first) - released);
}

}  // namespace

void read_elements_f32(const Extent& extent, int64_t first, int64_t count, float* out) {
  for_chunks(extent, first, count, [&](int64_t at, int64_t n) {
    convert_range(extent, at, n, out);
    out += n;
  });
}

void read_elements_bf16(const Extent& extent, int64_t first, int64_t count, uint16_t* out) {
  std::array<float, kChunk> wide;
  for_chunks(extent, first, count, [&](int64_t at, int64_t n) {
    if (extent.dtype == DType::bf16) {
      std::memcpy(out, extent.file->bytes().data() + extent.offset + 2 * at, 2 * n);
    } else {
      convert_range(extent, at, n, wide.data());
      std::transform(wide.begin(), wide.begin() + n, out, float_to_bf16);
    }
    out += n;
  });
}

}  // namespace aitraining::format
