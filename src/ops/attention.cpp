#include "aitraining/ops/attention.h"

#include <cmath>

#include "aitraining/ops/kernels.h"
#include "node.h"

namespace aitraining::ops {
namespace {

struct Views {
  at::Tensor q, k, v;  // [1, heads, S, head_dim] of one segment, strided into the [T, C] buffer
};

Views segment_views(const at::Tensor& buffer, const AttentionShape& shape, int64_t begin, int64_t end) {
  auto heads = buffer.slice(0, begin, end).view({end - begin, -1, shape.head_dim}).transpose(0, 1).unsqueeze(0);
  return {heads.narrow(1, 0, shape.heads), heads.narrow(1, shape.heads, shape.kv_heads),
          heads.narrow(1, shape.heads + shape.kv_heads, shape.kv_heads)};
}

at::Tensor head_view(const at::Tensor& y, const AttentionShape& shape, int64_t begin, int64_t end) {
  return y.slice(0, begin, end).view({end - begin, shape.heads, shape.head_dim}).transpose(0, 1).unsqueeze(0);
}

double softmax_scale(const AttentionShape& shape) {
  return shape.scale > 0 ? shape.scale : 1.0 / std::sqrt(static_cast<double>(shape.head_dim));
}

at::Tensor turn(const at::Tensor& x, const AttentionShape& shape, const Batch& batch, bool inverse) {
  return kernels::rope(x, batch.rope_cos, batch.rope_sin, shape.heads + shape.kv_heads, shape.head_dim, inverse);
}

// CPU: LibTorch's flash kernel, segment by segment.
struct FlashBackward : torch::autograd::Node {
  const Batch* batch = nullptr;
  AttentionShape shape;
  at::Tensor rotated, y;
  std::vector<at::Tensor> lse;

  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override {
    at::NoGradGuard no_grad;
    auto dy = grads[0].contiguous();
    auto drotated = at::empty_like(rotated);
    for (size_t s = 0; s < lse.size(); ++s) {
      const int64_t begin = batch->segment_begin[s], end = batch->segment_begin[s + 1];
      auto in = segment_views(rotated, shape, begin, end);
      auto out = segment_views(drotated, shape, begin, end);
      auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
          head_view(dy, shape, begin, end), in.q, in.k, in.v, head_view(y, shape, begin, end), lse[s], 0.0, true, {},
          softmax_scale(shape));
      out.q.copy_(dq);
      out.k.copy_(dk);
      out.v.copy_(dv);
    }
    auto dqkv = turn(drotated, shape, *batch, true);
    release_variables();
    return {dqkv};
  }

  void release_variables() override {
    rotated.reset();
    y.reset();
    lse.clear();
  }
};

at::Tensor flash_attention(const at::Tensor& qkv, const AttentionShape& shape, const Batch& batch) {
  at::Tensor rotated, y;
  std::vector<at::Tensor> lse;
  {
    at::NoGradGuard no_grad;
    rotated = turn(qkv, shape, batch, false);
    y = at::empty({qkv.size(0), shape.heads * shape.head_dim}, qkv.options());
    for (size_t s = 0; s + 1 < batch.segment_begin.size(); ++s) {
      const int64_t begin = batch.segment_begin[s], end = batch.segment_begin[s + 1];
      auto in = segment_views(rotated, shape, begin, end);
      auto [out, log_sum] = at::_scaled_dot_product_flash_attention_for_cpu(in.q, in.k, in.v, 0.0, true, {},
                                                                            softmax_scale(shape));
      head_view(y, shape, begin, end).copy_(out);
      lse.push_back(log_sum);
    }
  }
  attach<FlashBackward>(y, {qkv}, [&](FlashBackward& node) {
    node.batch = &batch;
    node.shape = shape;
    node.rotated = rotated;
    // A view of its own: holding y itself would tie the node to its own output.
    node.y = y.detach();
    node.lse = std::move(lse);
  });
  return y;
}

struct RopeBackward : torch::autograd::Node {
  const Batch* batch = nullptr;
  AttentionShape shape;
  torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override {
    at::NoGradGuard no_grad;
    return {turn(grads[0].contiguous(), shape, *batch, true)};
  }
};

// Other devices and tests: LibTorch's scaled_dot_product_attention under autograd, which picks its own kernel.
at::Tensor composed_attention(const at::Tensor& qkv, const AttentionShape& shape, const Batch& batch) {
  at::Tensor rotated;
  {
    at::NoGradGuard no_grad;
    rotated = turn(qkv, shape, batch, false);
  }
  attach<RopeBackward>(rotated, {qkv}, [&](RopeBackward& node) {
    node.batch = &batch;
    node.shape = shape;
  });
  std::vector<at::Tensor> parts;
  const int64_t group = shape.heads / shape.kv_heads;
  for (size_t s = 0; s + 1 < batch.segment_begin.size(); ++s) {
    const int64_t begin = batch.segment_begin[s], end = batch.segment_begin[s + 1];
    auto in = segment_views(rotated, shape, begin, end);
    auto k = group == 1 ? in.k : in.k.repeat_interleave(group, 1);
    auto v = group == 1 ? in.v : in.v.repeat_interleave(group, 1);
    auto out = at::scaled_dot_product_attention(in.q, k, v, {}, 0.0, true, softmax_scale(shape));
    parts.push_back(out.squeeze(0).transpose(0, 1).reshape({end - begin, shape.heads * shape.head_dim}));
  }
  return parts.size() == 1 ? parts[0] : at::cat(parts, 0);
}

}  // namespace

at::Tensor attention(const at::Tensor& qkv, const AttentionShape& shape, const Batch& batch) {
  return kernels::is_reference(qkv) ? composed_attention(qkv, shape, batch) : flash_attention(qkv, shape, batch);
}

}  // namespace aitraining::ops
