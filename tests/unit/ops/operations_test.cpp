#include <gtest/gtest.h>

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/generated/variable_factories.h>

#include "aitraining/ops/attention.h"
#include "aitraining/ops/embedding.h"
#include "aitraining/ops/head.h"
#include "aitraining/ops/kernels.h"
#include "aitraining/ops/project.h"

namespace aitraining::ops {
namespace {

void give_buffers(ParamGroup& group) {
  group.compute = at::randn({group.numel()}) * 0.3;
  group.grad = at::full({group.numel()}, 99.0);  // what stood there before must not leak in
  group.begin_update();
}

Batch batch_of(std::vector<int64_t> lengths) {
  Batch batch;
  batch.segment_begin = {0};
  std::vector<at::Tensor> positions;
  for (int64_t n : lengths) {
    positions.push_back(at::arange(n, at::kLong));
    batch.segment_begin.push_back(batch.segment_begin.back() + n);
  }
  batch.positions = at::cat(positions);
  const int64_t total = batch.segment_begin.back();
  batch.tokens = at::randint(0, 50, {total}, at::kLong);
  batch.row_keys = at::arange(total, at::kLong) * 977;
  auto angle = batch.positions.to(at::kFloat).unsqueeze(1) * at::tensor({1.0f, 0.1f, 0.01f, 0.001f}).unsqueeze(0);
  batch.rope_cos = angle.cos();
  batch.rope_sin = angle.sin();
  return batch;
}

double worst(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

class Projections : public ::testing::TestWithParam<Projection::Prologue> {};

// Against the same function written with ATen operations under autograd.
TEST_P(Projections, GradientsMatchAutograd) {
  at::manual_seed(11);
  ParamGroup base("base", true), adapters("adapters", true);
  Projection spec;
  spec.prologue = GetParam();
  const int64_t in = 24, out = 40, t = 13;
  const bool gated = spec.prologue == Projection::Prologue::swiglu;
  spec.weight = base.add({{"q", {16, in}}, {"k", {24, in}}}, true);
  spec.bias = base.add({{"bias", {out}}}, false);
  if (spec.prologue == Projection::Prologue::rms_norm) spec.norm = base.add({{"norm", {in}}}, false);
  LoraPart part;
  part.begin = 16;
  part.end = 40;
  part.a = adapters.add({{"a", {4, in}}}, true);
  part.b = adapters.add({{"b", {24, 4}}}, true);
  part.scale = 2.0;
  part.dropout = 0.4;
  part.site = 5;
  spec.lora.push_back(part);
  give_buffers(base);
  give_buffers(adapters);
  auto batch = batch_of({t});

  auto x = at::randn({t, gated ? 2 * in : in}).requires_grad_(true);
  auto residual = at::randn({t, out}).requires_grad_(true);
  auto dy = at::randn({t, out});
  auto y = project(x, spec, batch, residual);
  torch::autograd::backward({y}, {dy});
  base.finish_update();
  adapters.finish_update();

  auto leaf = [](const at::Tensor& v) { return v.detach().clone().requires_grad_(true); };
  auto x2 = leaf(x), r2 = leaf(residual), w = leaf(spec.weight.value()), b = leaf(spec.bias.value());
  auto la = leaf(part.a.value()), lb = leaf(part.b.value());
  at::Tensor norm, f = x2;
  if (spec.norm.defined()) {
    norm = leaf(spec.norm.value());
    f = x2 * at::rsqrt(x2.square().mean(-1, true) + 1e-6) * norm;
  } else if (gated) {
    f = at::silu(x2.narrow(1, 0, in)) * x2.narrow(1, in, in);
  }
  auto mask = kernels::dropout(at::ones({t, in}), batch.row_keys, 5, 0.4);
  auto low = at::mm(at::mm(f * mask, la.t()), lb.t()) * 2.0;
  auto y2 = r2 + at::mm(f, w.t()) + b + at::constant_pad_nd(low, {16, 0});
  torch::autograd::backward({y2}, {dy});

  EXPECT_LT(worst(y, y2), 1e-4);
  EXPECT_LT(worst(x.grad(), x2.grad()), 1e-4);
  EXPECT_LT(worst(residual.grad(), r2.grad()), 1e-6);
  EXPECT_LT(worst(spec.weight.gradient(), w.grad()), 1e-4);
  EXPECT_LT(worst(spec.bias.gradient(), b.grad()), 1e-4);
  EXPECT_LT(worst(part.a.gradient(), la.grad()), 1e-4);
  EXPECT_LT(worst(part.b.gradient(), lb.grad()), 1e-4);
  if (norm.defined()) {
    EXPECT_LT(worst(spec.norm.gradient(), norm.grad()), 1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(Prologues, Projections,
                         ::testing::Values(Projection::Prologue::none, Projection::Prologue::rms_norm,
                                           Projection::Prologue::swiglu));

TEST(Attention, FlashAndComposedFormsAgreeInValueAndGradient) {
  at::manual_seed(12);
  const AttentionShape shape{6, 2, 8, 0};
  const auto batch = batch_of({7, 1, 20});
  auto qkv = at::randn({28, 10 * 8});
  auto dy = at::randn({28, 48});
  auto run = [&](bool reference) {
    kernels::use_reference(reference);
    auto x = qkv.clone().requires_grad_(true);
    auto y = attention(x, shape, batch);
    torch::autograd::backward({y}, {dy});
    kernels::use_reference(false);
    return std::make_pair(y.detach(), x.grad());
  };
  const auto fast = run(false), reference = run(true);
  EXPECT_LT(worst(fast.first, reference.first), 1e-5);
  EXPECT_LT(worst(fast.second, reference.second), 1e-5);
}

TEST(Attention, SegmentsDoNotSeeEachOther) {
  at::manual_seed(13);
  const AttentionShape shape{2, 1, 8, 0};
  auto qkv = at::randn({12, 32});
  auto changed = qkv.clone();
  changed.narrow(0, 0, 5).normal_();
  const auto batch = batch_of({5, 7});
  at::NoGradGuard no_grad;
  EXPECT_TRUE(at::equal(attention(qkv, shape, batch).narrow(0, 5, 7), attention(changed, shape, batch).narrow(0, 5, 7)));
}

// A tied table is used by the head first and by the embedding last: both contributions must be in its gradient.
TEST(Head, TiedTableGetsBothGradients) {
  at::manual_seed(14);
  ParamGroup table_group("embedding", true), norm_group("head", true);
  const auto table = table_group.add({{"table", {50, 16}}}, true);
  Head head;
  head.norm = norm_group.add({{"norm", {16}}}, false);
  head.weight = table;
  give_buffers(table_group);
  give_buffers(norm_group);
  auto batch = batch_of({9, 4});
  batch.label_rows = at::tensor(std::vector<int64_t>{2, 3, 7, 10});
  batch.labels = at::tensor(std::vector<int64_t>{5, 5, 49, 0});
  batch.loss_scale = 0.25;
  auto anchor = at::zeros({1}).requires_grad_(true);
  auto loss = negative_log_likelihood(embed(anchor, table, batch), head, batch);
  torch::autograd::backward({loss}, {at::ones_like(loss)});
  table_group.finish_update();
  norm_group.finish_update();

  auto w = table.value().clone().requires_grad_(true), n = head.norm.value().clone().requires_grad_(true);
  auto x = w.index_select(0, batch.tokens).index_select(0, batch.label_rows);
  auto normed = x * at::rsqrt(x.square().mean(-1, true) + 1e-6) * n;
  auto expected = -at::log_softmax(at::mm(normed, w.t()), -1).gather(1, batch.labels.unsqueeze(1)).sum();
  torch::autograd::backward({expected * 0.25}, {});
  EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 1e-4);
  EXPECT_LT(worst(table.gradient(), w.grad()), 1e-5);
  EXPECT_LT(worst(head.norm.gradient(), n.grad()), 1e-5);
}

TEST(ParamGroup, UntouchedWeightsGetZeroGradients) {
  ParamGroup group("g", true);
  const auto first = group.add({{"a", {3, 5}}}, true);
  const auto second = group.add({{"b", {2}}}, false);
  EXPECT_EQ(group.parameters(), 17);
  EXPECT_EQ(group.params()[1].offset % 32, 0);
  give_buffers(group);
  first.add(at::ones({3, 5}));
  first.add(at::ones({3, 5}));
  group.finish_update();
  EXPECT_TRUE(at::equal(first.gradient(), at::full({3, 5}, 2.0f)));
  EXPECT_TRUE(at::equal(second.gradient(), at::zeros({2})));
}

}  // namespace
}  // namespace aitraining::ops
