#include "aitraining/ops/kernels.h"

#include <cmath>
#include <vector>

#include <ATen/Parallel.h>

#include "aitraining/core/error.h"
#include "row_kernels.h"

namespace aitraining::ops::kernels {
namespace {

bool g_reference = false;

// A row as fp32: the row itself, or converted into `space`.
const float* load(const at::Tensor& x, int64_t row, int64_t n, std::vector<float>& space) {
  if (x.scalar_type() == at::kFloat) return x.const_data_ptr<float>() + row * n;
  const auto* p = x.const_data_ptr<at::BFloat16>() + row * n;
  space.resize(n);
  for (int64_t i = 0; i < n; ++i) space[i] = static_cast<float>(p[i]);
  return space.data();
}

// Where a row's fp32 result is made; store() rounds it into place when the tensor is bf16.
float* target(at::Tensor& y, int64_t row, int64_t n, std::vector<float>& space) {
  if (y.scalar_type() == at::kFloat) return y.data_ptr<float>() + row * n;
  space.resize(n);
  return space.data();
}
void store(at::Tensor& y, int64_t row, int64_t n, const std::vector<float>& space) {
  if (y.scalar_type() == at::kFloat) return;
  auto* p = y.data_ptr<at::BFloat16>() + row * n;
  for (int64_t i = 0; i < n; ++i) p[i] = static_cast<at::BFloat16>(space[i]);
}

int64_t grain(int64_t columns) { return std::max<int64_t>(1, 16384 / std::max<int64_t>(columns, 1)); }

void for_rows(int64_t rows, int64_t columns, const std::function<void(int64_t, int64_t)>& f) {
  at::parallel_for(0, rows, grain(columns), f);
}

}  // namespace

void use_reference(bool on) { g_reference = on; }

bool is_reference(const at::Tensor& x) {
  return g_reference || !x.is_cpu() || !x.is_contiguous() ||
         (x.scalar_type() != at::kFloat && x.scalar_type() != at::kBFloat16);
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& w, double eps) {
  if (is_reference(x)) {
    auto xf = x.to(at::kFloat);
    auto y = xf * at::rsqrt(xf.square().mean(-1, true) + eps) * w.to(at::kFloat);
    return y.to(x.scalar_type());
  }
  auto y = at::empty_like(x);
  auto wf = w.to(at::kFloat).contiguous();
  const int64_t n = x.size(-1);
  for_rows(x.numel() / n, n, [&](int64_t begin, int64_t end) {
    std::vector<float> in, out;
    for (int64_t r = begin; r < end; ++r) {
      rows::rms_norm(load(x, r, n, in), wf.const_data_ptr<float>(), target(y, r, n, out), n, static_cast<float>(eps));
      store(y, r, n, out);
    }
  });
  return y;
}

std::pair<at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor& dy_in, const at::Tensor& x, const at::Tensor& w,
                                                    double eps, bool want_dw) {
  auto wf = w.to(at::kFloat).contiguous();
  if (is_reference(x)) {
    auto xf = x.to(at::kFloat), dy = dy_in.to(at::kFloat);
    auto inverse = at::rsqrt(xf.square().mean(-1, true) + eps);
    auto dyw = dy * wf;
    auto dx = dyw * inverse - xf * (dyw * xf).mean(-1, true) * inverse.pow(3);
    return {dx.to(x.scalar_type()), want_dw ? (dy * xf * inverse).sum(0) : at::Tensor()};
  }
  auto dy = dy_in.contiguous();
  const int64_t n = x.size(-1), count = x.numel() / n;
  auto dx = at::empty_like(x);
  std::vector<float> inverse(count);
  for_rows(count, n, [&](int64_t begin, int64_t end) {
    std::vector<float> a, b, out;
    for (int64_t r = begin; r < end; ++r) {
      inverse[r] = rows::rms_norm_backward(load(dy, r, n, a), load(x, r, n, b), wf.const_data_ptr<float>(),
                                           target(dx, r, n, out), n, static_cast<float>(eps));
      store(dx, r, n, out);
    }
  });
  if (!want_dw) return {dx, at::Tensor()};
  // Threads own columns, so that each column's sum has one order whatever the number of threads.
  auto dw = at::zeros({n}, wf.options());
  auto dyf = dy.to(at::kFloat), xf = x.to(at::kFloat);
  at::parallel_for(0, n, std::max<int64_t>(16, 65536 / std::max<int64_t>(count, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t r = 0; r < count; ++r) {
      rows::accumulate_product(dyf.const_data_ptr<float>() + r * n + begin, xf.const_data_ptr<float>() + r * n + begin,
                               inverse[r], dw.data_ptr<float>() + begin, end - begin);
    }
  });
  return {dx, dw};
}

at::Tensor swiglu(const at::Tensor& gate_up) {
  const int64_t n = gate_up.size(-1) / 2;
  if (is_reference(gate_up)) {
    auto f = gate_up.to(at::kFloat);
    return (at::silu(f.narrow(-1, 0, n)) * f.narrow(-1, n, n)).to(gate_up.scalar_type());
  }
  auto y = at::empty({gate_up.size(0), n}, gate_up.options());
  for_rows(gate_up.size(0), 4 * n, [&](int64_t begin, int64_t end) {
    std::vector<float> in, out;
    for (int64_t r = begin; r < end; ++r) {
      const float* gate = load(gate_up, r, 2 * n, in);
      rows::swiglu(gate, gate + n, target(y, r, n, out), n);
      store(y, r, n, out);
    }
  });
  return y;
}

at::Tensor swiglu_backward(const at::Tensor& dy_in, const at::Tensor& gate_up) {
  const int64_t n = gate_up.size(-1) / 2;
  if (is_reference(gate_up)) {
    auto f = gate_up.to(at::kFloat), dy = dy_in.to(at::kFloat);
    auto gate = f.narrow(-1, 0, n), up = f.narrow(-1, n, n);
    auto sigmoid = at::sigmoid(gate);
    auto dgate = dy * up * sigmoid * (1 + gate * (1 - sigmoid));
    return at::cat({dgate, dy * gate * sigmoid}, -1).to(gate_up.scalar_type());
  }
  auto dy = dy_in.contiguous();
  auto dx = at::empty_like(gate_up);
  for_rows(gate_up.size(0), 4 * n, [&](int64_t begin, int64_t end) {
    std::vector<float> a, b, out;
    for (int64_t r = begin; r < end; ++r) {
      const float* gate = load(gate_up, r, 2 * n, b);
      float* dgate = target(dx, r, 2 * n, out);
      rows::swiglu_backward(load(dy, r, n, a), gate, gate + n, dgate, dgate + n, n);
      store(dx, r, 2 * n, out);
    }
  });
  return dx;
}

namespace {

at::Tensor rope_reference(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, int64_t heads,
                          int64_t head_dim, bool inverse) {
  const int64_t width = heads * head_dim, half = head_dim / 2;
  auto turned = x.narrow(-1, 0, width).to(at::kFloat).view({x.size(0), heads, head_dim});
  auto first = turned.narrow(-1, 0, half), second = turned.narrow(-1, half, half);
  auto c = cos.unsqueeze(1), s = (inverse ? -sin : sin).unsqueeze(1);
  auto y = at::cat({first * c - second * s, second * c + first * s}, -1).view({x.size(0), width});
  return at::cat({y.to(x.scalar_type()), x.narrow(-1, width, x.size(-1) - width)}, -1);
}

}  // namespace

at::Tensor rope(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, int64_t heads, int64_t head_dim,
                bool inverse) {
  if (is_reference(x)) return rope_reference(x, cos, sin, heads, head_dim, inverse);
  const int64_t n = x.size(-1), half = head_dim / 2;
  auto y = at::empty_like(x);
  const float sign = inverse ? -1.0f : 1.0f;
  for_rows(x.size(0), n, [&](int64_t begin, int64_t end) {
    std::vector<float> in, out;
    for (int64_t r = begin; r < end; ++r) {
      const float* source = load(x, r, n, in);
      float* to = target(y, r, n, out);
      const float* c = cos.const_data_ptr<float>() + r * half;
      const float* s = sin.const_data_ptr<float>() + r * half;
      for (int64_t h = 0; h < heads; ++h) {
        const int64_t at_head = h * head_dim;
        rows::rotate(source + at_head, source + at_head + half, c, s, sign, to + at_head, to + at_head + half, half);
      }
      std::copy(source + heads * head_dim, source + n, to + heads * head_dim);
      store(y, r, n, out);
    }
  });
  return y;
}

int64_t mix_key(uint64_t seed, uint64_t pass, uint64_t sample, uint64_t position) {
  return static_cast<int64_t>(rows::mix(rows::mix(rows::mix(seed ^ 0x5bd1e995) + pass) + sample) + position * 0x9e3779b97f4a7c15ULL);
}

namespace {

// splitmix64 out of ATen operations; int64 wraps as uint64 does, and shifts are made logical by masking.
at::Tensor mix_reference(const at::Tensor& key) {
  auto logical = [](const at::Tensor& z, int64_t shift) {
    return at::bitwise_and(at::bitwise_right_shift(z, shift), (int64_t{1} << (64 - shift)) - 1);
  };
  auto z = key + static_cast<int64_t>(0x9e3779b97f4a7c15ULL);
  z = at::bitwise_xor(z, logical(z, 30)) * static_cast<int64_t>(0xbf58476d1ce4e5b9ULL);
  z = at::bitwise_xor(z, logical(z, 27)) * static_cast<int64_t>(0x94d049bb133111ebULL);
  return at::bitwise_xor(z, logical(z, 31));
}

int64_t site_salt(int64_t site) { return static_cast<int64_t>(rows::mix(static_cast<uint64_t>(site) + 0x51ed270b)); }

}  // namespace

at::Tensor dropout(const at::Tensor& x, const at::Tensor& row_keys, int64_t site, double p) {
  const int64_t n = x.size(-1);
  const auto threshold = static_cast<uint32_t>(std::lround(p * 65536.0));
  const auto scale = static_cast<float>(1.0 / (1.0 - p));
  if (is_reference(x)) {
    auto columns = at::arange(n, row_keys.options());
    auto quad = at::bitwise_right_shift(columns, 2);
    auto hash = mix_reference((row_keys + site_salt(site)).unsqueeze(1) + quad);
    auto shift = at::bitwise_and(columns, 3) * 16;
    auto u = at::bitwise_and(at::bitwise_right_shift(hash, shift), 0xffff);
    return at::where(u.ge(static_cast<int64_t>(threshold)), x.to(at::kFloat) * scale, 0.0).to(x.scalar_type());
  }
  auto y = at::empty_like(x);
  const int64_t salt = site_salt(site);
  for_rows(x.size(0), n, [&](int64_t begin, int64_t end) {
    std::vector<float> in, out;
    for (int64_t r = begin; r < end; ++r) {
      const auto key = static_cast<uint64_t>(row_keys.const_data_ptr<int64_t>()[r]) + static_cast<uint64_t>(salt);
      rows::dropout(load(x, r, n, in), target(y, r, n, out), n, key, threshold, scale);
      store(y, r, n, out);
    }
  });
  return y;
}

double cross_entropy_(at::Tensor logits, const at::Tensor& labels, double scale, bool gradient) {
  if (is_reference(logits)) {
    auto lse = at::logsumexp(logits, -1, true);
    auto index = labels.unsqueeze(1);
    const double loss = (lse - logits.gather(1, index)).sum(at::kDouble).item<double>();
    if (gradient) {
      logits.sub_(lse).exp_().mul_(scale);
      logits.scatter_add_(1, index, at::full_like(index, -scale, logits.options()));
    }
    return loss;
  }
  const int64_t n = logits.size(1), count = logits.size(0);
  std::vector<double> losses(count);
  auto* data = logits.data_ptr<float>();
  const auto* label = labels.const_data_ptr<int64_t>();
  at::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      float* row = data + r * n;
      const double wanted = row[label[r]];
      losses[r] = rows::softmax(row, n, static_cast<float>(scale), gradient) - wanted;
      if (gradient) row[label[r]] -= static_cast<float>(scale);
    }
  });
  double sum = 0;
  for (double loss : losses) sum += loss;
  return sum;
}

double sum_of_squares(const at::Tensor& flat) {
  if (is_reference(flat) || flat.scalar_type() != at::kFloat) {
    return flat.to(at::kFloat).square().sum(at::kDouble).item<double>();
  }
  constexpr int64_t kChunk = 1 << 16;
  const int64_t n = flat.numel(), chunks = (n + kChunk - 1) / kChunk;
  std::vector<double> partial(chunks);
  const auto* data = flat.const_data_ptr<float>();
  at::parallel_for(0, chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      partial[c] = rows::sum_of_squares(data + c * kChunk, std::min(kChunk, n - c * kChunk));
    }
  });
  double sum = 0;
  for (double value : partial) sum += value;
  return sum;
}

void uniform_fill(at::Tensor flat, uint64_t key, double bound) {
  auto host = at::empty({flat.numel()}, at::kFloat);
  auto* data = host.data_ptr<float>();
  for (int64_t i = 0; i < host.numel(); ++i) {
    const double unit = static_cast<double>(rows::mix(key + static_cast<uint64_t>(i)) >> 11) * 0x1.0p-53;
    data[i] = static_cast<float>((2.0 * unit - 1.0) * bound);
  }
  flat.copy_(host.view_as(flat));
}

}  // namespace aitraining::ops::kernels
