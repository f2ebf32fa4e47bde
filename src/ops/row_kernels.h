#pragma once
// Inner loops over one row, in fp32. Plain loops that the compiler vectorises, cloned for the instruction sets at hand.
#include <cstdint>

namespace aitraining::ops::rows {

void rms_norm(const float* x, const float* w, float* y, int64_t n, float eps);
// dx of one row; returns 1 / rms.
float rms_norm_backward(const float* dy, const float* x, const float* w, float* dx, int64_t n, float eps);
// out[i] += a[i] * b[i] * s
void accumulate_product(const float* a, const float* b, float s, float* out, int64_t n);
void swiglu(const float* gate, const float* up, float* y, int64_t n);
void swiglu_backward(const float* dy, const float* gate, const float* up, float* dgate, float* dup, int64_t n);
// first/second: the two halves of one head; sign -1 turns back.
void rotate(const float* first, const float* second, const float* cos, const float* sin, float sign, float* out_first,
            float* out_second, int64_t n);
void dropout(const float* x, float* y, int64_t n, uint64_t row_key, uint32_t threshold, float scale);
// Returns log(sum(exp(x))); with gradient, x becomes scale * softmax(x).
double softmax(float* x, int64_t n, float scale, bool gradient);
double sum_of_squares(const float* x, int64_t n);

inline uint64_t mix(uint64_t z) {  // splitmix64 (Steele, Lea and Flood, 2014)
  z += 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace aitraining::ops::rows
