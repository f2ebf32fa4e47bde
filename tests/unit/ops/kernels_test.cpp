#include "aitraining/ops/kernels.h"

#include <gtest/gtest.h>

#include <ATen/ATen.h>

namespace aitraining::ops::kernels {
namespace {

// Runs f twice, with the CPU form and with the reference form, on the same inputs.
template <class F>
std::pair<at::Tensor, at::Tensor> both(F&& f) {
  use_reference(false);
  at::Tensor fast = f();
  use_reference(true);
  at::Tensor reference = f();
  use_reference(false);
  return {fast, reference};
}

double difference(const std::pair<at::Tensor, at::Tensor>& pair) {
  return (pair.first.to(at::kDouble) - pair.second.to(at::kDouble)).abs().max().item<double>();
}

class KernelForms : public ::testing::TestWithParam<std::tuple<at::ScalarType, int>> {
 protected:
  at::Tensor random(std::vector<int64_t> shape) {
    return at::randn(shape, at::kFloat).to(std::get<0>(GetParam()));
  }
  int64_t width() const { return std::get<1>(GetParam()); }
  double tolerance() const { return std::get<0>(GetParam()) == at::kFloat ? 2e-5 : 4e-2; }
  void SetUp() override { at::manual_seed(7); }
};

TEST_P(KernelForms, RmsNormAndItsBackward) {
  auto x = random({37, width()}), w = random({width()}), dy = random({37, width()});
  EXPECT_LT(difference(both([&] { return rms_norm(x, w, 1e-6); })), tolerance());
  EXPECT_LT(difference(both([&] { return rms_norm_backward(dy, x, w, 1e-6, false).first; })), tolerance());
  EXPECT_LT(difference(both([&] { return rms_norm_backward(dy, x, w, 1e-6, true).second; })), 1e-4);
}

TEST_P(KernelForms, SwigluAndItsBackward) {
  auto x = random({23, 2 * width()}) * 4, dy = random({23, width()});
  EXPECT_LT(difference(both([&] { return swiglu(x); })), 4 * tolerance());
  EXPECT_LT(difference(both([&] { return swiglu_backward(dy, x); })), 4 * tolerance());
}

TEST_P(KernelForms, DropoutMasksAreTheSame) {
  auto x = random({19, width()});
  auto keys = at::arange(19, at::kLong) * 12345678901 - 77;
  EXPECT_EQ(difference(both([&] { return dropout(x, keys, 3, 0.3); })), 0.0);
}

INSTANTIATE_TEST_SUITE_P(Types, KernelForms,
                         ::testing::Combine(::testing::Values(at::kFloat, at::kBFloat16), ::testing::Values(5, 64, 576)));

TEST(Swiglu, ExtremeGatesStayFinite) {
  auto x = at::tensor({-200.0f, -90.0f, 0.0f, 90.0f, 200.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f}).view({1, 10});
  auto y = swiglu(x);
  EXPECT_TRUE(at::isfinite(y).all().item<bool>());
  EXPECT_NEAR(y[0][0].item<double>(), 0.0, 1e-30);
  EXPECT_FLOAT_EQ(y[0][4].item<float>(), 200.0f);
}

TEST(Rope, InverseUndoesAndOtherHeadsStay) {
  at::manual_seed(1);
  auto x = at::randn({11, 5 * 16});
  auto angle = at::randn({11, 8});
  auto cos = angle.cos(), sin = angle.sin();
  auto turned = rope(x, cos, sin, 3, 16, false);
  EXPECT_LT((rope(turned, cos, sin, 3, 16, true) - x).abs().max().item<double>(), 1e-5);
  EXPECT_TRUE(at::equal(turned.narrow(1, 48, 32), x.narrow(1, 48, 32)));
  EXPECT_LT(difference(both([&] { return rope(x, cos, sin, 3, 16, false); })), 1e-6);
}

TEST(Dropout, KeepsTheRightShareAndScalesIt) {
  auto x = at::ones({400, 256});
  auto keys = at::empty({400}, at::kLong);
  for (int64_t i = 0; i < 400; ++i) keys[i] = mix_key(42, 0, static_cast<uint64_t>(i / 20), static_cast<uint64_t>(i % 20));
  auto y = dropout(x, keys, 0, 0.25);
  const double kept = (y > 0).to(at::kDouble).mean().item<double>();
  EXPECT_NEAR(kept, 0.75, 0.005);
  EXPECT_NEAR(y.max().item<double>(), 1 / 0.75, 1e-6);
  EXPECT_FALSE(at::equal(y, dropout(x, keys, 1, 0.25))) << "sites share a mask";
}

TEST(CrossEntropy, LossAndGradientMatchLogSoftmax) {
  at::manual_seed(2);
  auto logits = at::randn({9, 5000}) * 6;
  auto labels = at::randint(0, 5000, {9}, at::kLong);
  auto log_p = at::log_softmax(logits.to(at::kDouble), -1);
  const double expected = -log_p.gather(1, labels.unsqueeze(1)).sum().item<double>();
  auto gradient = log_p.exp();
  gradient.scatter_add_(1, labels.unsqueeze(1), at::full({9, 1}, -1.0, at::kDouble));
  for (bool reference : {false, true}) {
    use_reference(reference);
    auto work = logits.clone();
    EXPECT_NEAR(cross_entropy_(work, labels, 0.5, true), expected, 1e-5 * expected);
    EXPECT_LT((work.to(at::kDouble) - 0.5 * gradient).abs().max().item<double>(), 1e-6);
    auto untouched = logits.clone();
    EXPECT_NEAR(cross_entropy_(untouched, labels, 0.5, false), expected, 1e-5 * expected);
  }
  use_reference(false);
}

TEST(SumOfSquares, MatchesFp64AndThreadsDoNotMatter) {
  at::manual_seed(3);
  auto x = at::randn({200003});
  const double expected = x.to(at::kDouble).square().sum().item<double>();
  const double two = sum_of_squares(x);
  EXPECT_NEAR(two, expected, 1e-6 * expected);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  EXPECT_EQ(sum_of_squares(x), two);
  at::set_num_threads(threads);
}

}  // namespace
}  // namespace aitraining::ops::kernels
