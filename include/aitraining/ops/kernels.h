#pragma once
// Elementwise and row-wise kernels. Each has one form for CPU tensors (fp32, bf16; vectorised loops, threads over rows)
// and one reference form out of ATen operations, which serves every other device and the tests.
#include <cstdint>
#include <utility>

#include <ATen/ATen.h>

namespace aitraining::ops::kernels {

// True: the reference form on CPU too (tests compare both). Not thread-safe; set before work.
void use_reference(bool on);
bool is_reference(const at::Tensor& x);

// y = x / rms(x) * w. x: [T, H]; w: [H]. Statistics in fp32 (Zhang and Sennrich, 2019, arXiv 1910.07467).
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& w, double eps);
// {dx, dw}: dw is fp32 [H], undefined unless asked for. y's statistics are computed again from x.
std::pair<at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& w,
                                                    double eps, bool want_dw);

// silu(gate) * up. gate_up: [T, 2I], gate first.
at::Tensor swiglu(const at::Tensor& gate_up);
at::Tensor swiglu_backward(const at::Tensor& dy, const at::Tensor& gate_up);

// Rotates the first `heads` heads of x [T, C] (each head_dim wide, halves paired as in rotate_half) and copies the rest.
// inverse: the transposed rotation, for gradients.
at::Tensor rope(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, int64_t heads, int64_t head_dim,
                bool inverse);

// x * mask / (1 - p): element (t, c) is kept when a hash of (row_keys[t], site, c) is large enough. The same mask for
// every device, batch shape, rank count and recomputation.
at::Tensor dropout(const at::Tensor& x, const at::Tensor& row_keys, int64_t site, double p);

// Cross entropy of fp32 logits [n, V] in place: the sum of -log softmax(logits)[label] is returned (fp64); logits become
// scale * (softmax - onehot) when `gradient`.
double cross_entropy_(at::Tensor logits, const at::Tensor& labels, double scale, bool gradient);

// Sum of squares in fp64, in an order that does not depend on threads.
double sum_of_squares(const at::Tensor& flat);

// Key of one token's masks.
int64_t mix_key(uint64_t seed, uint64_t pass, uint64_t sample, uint64_t position);
// U(-bound, bound) from a counter: the same on every rank and device.
void uniform_fill(at::Tensor flat, uint64_t key, double bound);

}  // namespace aitraining::ops::kernels
