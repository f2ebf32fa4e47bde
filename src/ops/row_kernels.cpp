#include "row_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>

// One body, three instruction sets, chosen when the library is loaded.
#define AIT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), optimize("O3")))
#if !defined(__x86_64__)
#undef AIT_CLONES
#define AIT_CLONES
#endif

namespace aitraining::ops::rows {
namespace {

// exp(x) to about 1 ulp by Cody-Waite reduction and a degree-6 polynomial (Cephes' coefficients); branchless, so that
// loops over it vectorise. Results below 2^-126 become about 2^-126.
__attribute__((always_inline)) inline float exp_fast(float x) {
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  x = x < -87.3f ? -87.3f : x;
  x = x > 88.0f ? 88.0f : x;
  const float shifted = x * 1.44269504088896341f + kMagic;
  const float n = shifted - kMagic;
  const int32_t exponent = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kMagic);
  float r = x - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  return p * std::bit_cast<float>((exponent + 127) << 23);
}

constexpr int64_t kBlock = 1024;  // fp32 partial sums stay short; blocks are added in fp64

}  // namespace

AIT_CLONES void rms_norm(const float* x, const float* w, float* y, int64_t n, float eps) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += x[i] * x[i];
  const float inverse = 1.0f / std::sqrt(sum / static_cast<float>(n) + eps);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * inverse * w[i];
}

AIT_CLONES float rms_norm_backward(const float* dy, const float* x, const float* w, float* dx, int64_t n, float eps) {
  float sum = 0, dot = 0;
#pragma omp simd reduction(+ : sum, dot)
  for (int64_t i = 0; i < n; ++i) {
    sum += x[i] * x[i];
    dot += dy[i] * w[i] * x[i];
  }
  const float inverse = 1.0f / std::sqrt(sum / static_cast<float>(n) + eps);
  const float along = dot * inverse * inverse * inverse / static_cast<float>(n);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dx[i] = dy[i] * w[i] * inverse - x[i] * along;
  return inverse;
}

AIT_CLONES void accumulate_product(const float* a, const float* b, float s, float* out, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) out[i] += a[i] * b[i] * s;
}

AIT_CLONES void swiglu(const float* gate, const float* up, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = gate[i] / (1.0f + exp_fast(-gate[i])) * up[i];
}

AIT_CLONES void swiglu_backward(const float* dy, const float* gate, const float* up, float* dgate, float* dup,
                                int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float sigmoid = 1.0f / (1.0f + exp_fast(-gate[i]));
    const float silu = gate[i] * sigmoid;
    dup[i] = dy[i] * silu;
    dgate[i] = dy[i] * up[i] * (sigmoid + silu * (1.0f - sigmoid));
  }
}

AIT_CLONES void rotate(const float* first, const float* second, const float* cos, const float* sin, float sign,
                       float* out_first, float* out_second, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float a = first[i], b = second[i], s = sign * sin[i];
    out_first[i] = a * cos[i] - b * s;
    out_second[i] = b * cos[i] + a * s;
  }
}

AIT_CLONES void dropout(const float* x, float* y, int64_t n, uint64_t row_key, uint32_t threshold, float scale) {
  // One hash serves four neighbouring columns, 16 bits each.
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const uint64_t h = mix(row_key + static_cast<uint64_t>(i >> 2));
    for (int64_t k = 0; k < 4; ++k) {
      const uint32_t u = static_cast<uint32_t>(h >> (16 * k)) & 0xffffu;
      y[i + k] = u >= threshold ? x[i + k] * scale : 0.0f;
    }
  }
  const uint64_t h = mix(row_key + static_cast<uint64_t>(i >> 2));
  for (int64_t k = 0; i + k < n; ++k) {
    const uint32_t u = static_cast<uint32_t>(h >> (16 * k)) & 0xffffu;
    y[i + k] = u >= threshold ? x[i + k] * scale : 0.0f;
  }
}

AIT_CLONES double softmax(float* x, int64_t n, float scale, bool gradient) {
  float largest = x[0];
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(n, begin + kBlock);
    float sum = 0;
    if (gradient) {
#pragma omp simd reduction(+ : sum)
      for (int64_t i = begin; i < end; ++i) {
        x[i] = exp_fast(x[i] - largest);
        sum += x[i];
      }
    } else {
#pragma omp simd reduction(+ : sum)
      for (int64_t i = begin; i < end; ++i) sum += exp_fast(x[i] - largest);
    }
    total += sum;
  }
  if (gradient) {
    const float factor = static_cast<float>(scale / total);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) x[i] *= factor;
  }
  return static_cast<double>(largest) + std::log(total);
}

AIT_CLONES double sum_of_squares(const float* x, int64_t n) {
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(n, begin + kBlock);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = begin; i < end; ++i) sum += x[i] * x[i];
    total += sum;
  }
  return total;
}

}  // namespace aitraining::ops::rows
