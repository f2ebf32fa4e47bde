#include "aitraining/engine/engine.h"

#include <gtest/gtest.h>

#include "support/tiny_model.h"

namespace aitraining::engine {
namespace {

using testing::tiny_batch;
using testing::tiny_labels;

struct Trial {
  std::unique_ptr<comm::ProcessGroup> group = comm::make_process_group({});
  std::unique_ptr<model::Decoder> decoder;
  std::unique_ptr<Engine> engine;

  Trial(EngineOptions options, bool tied = false, std::optional<model::LoraOptions> lora = std::nullopt) {
    decoder = std::make_unique<model::Decoder>(testing::tiny_config(tied), lora);
    engine = std::make_unique<Engine>(decoder->chain(), *group, options);
    engine->load(testing::tiny_weights(), [](const ops::ParamGroup& g) { return g.name() != "adapters"; });
    engine->load(model::adapter_initialiser(1), [](const ops::ParamGroup& g) { return g.name() == "adapters"; });
  }

  UpdateResult update(const std::vector<std::vector<int64_t>>& micros, double rate, double* loss = nullptr) {
    int64_t labels = 0;
    for (const auto& rows : micros) labels += tiny_labels(rows);
    engine->begin_update();
    double sum = 0;
    for (size_t m = 0; m < micros.size(); ++m) {
      const auto batch = tiny_batch(*decoder, micros[m], static_cast<double>(labels));
      sum += engine->micro_step(micros[m].empty() ? nullptr : &batch, m + 1 == micros.size());
    }
    if (loss) *loss = sum / static_cast<double>(labels);
    return engine->finish_update(rate);
  }

  at::Tensor weights() const {
    std::vector<at::Tensor> flats;
    for (const auto& range : engine->owned_state()) flats.push_back(range.weight.clone());
    return at::cat(flats);
  }
};

model::LoraOptions lora(double dropout) { return {4, 16, dropout, "all-linear"}; }

EngineOptions sgd() {
  EngineOptions options;
  options.optimizer.kind = OptimizerOptions::Kind::sgd;
  options.max_grad_norm = 0;
  return options;
}

class Recompute : public ::testing::TestWithParam<std::tuple<bool, bool>> {};

// Keeping activations or computing them again must not change one bit, dropout included.
TEST_P(Recompute, DoesNotChangeABit) {
  const auto [tied, adapters] = GetParam();
  std::optional<model::LoraOptions> with;
  if (adapters) with = lora(0.3);
  EngineOptions keep, again;
  keep.recompute = false;
  again.recompute = true;
  Trial a(keep, tied, with), b(again, tied, with);
  for (int step = 0; step < 3; ++step) {
    double loss_a = 0, loss_b = 0;
    const auto result_a = a.update({{0, 1, 2}, {3}}, 1e-2, &loss_a);
    const auto result_b = b.update({{0, 1, 2}, {3}}, 1e-2, &loss_b);
    EXPECT_EQ(loss_a, loss_b);
    EXPECT_EQ(result_a.grad_norm, result_b.grad_norm);
  }
  EXPECT_TRUE(at::equal(a.weights(), b.weights()));
}

INSTANTIATE_TEST_SUITE_P(Shapes, Recompute, ::testing::Combine(::testing::Bool(), ::testing::Bool()));

TEST(Accumulation, BatchShapeDoesNotMatter) {
  std::vector<double> norms, losses;
  std::vector<at::Tensor> weights;
  for (const auto& micros : std::vector<std::vector<std::vector<int64_t>>>{
           {{0, 1, 2, 3}}, {{0, 1}, {2, 3}}, {{0}, {1}, {2}, {3}}, {{0, 1, 2, 3}, {}}}) {
    Trial run(sgd());
    double loss = 0;
    norms.push_back(run.update(micros, 0.1, &loss).grad_norm);
    losses.push_back(loss);
    weights.push_back(run.weights());
  }
  for (size_t i = 1; i < norms.size(); ++i) {
    EXPECT_NEAR(losses[i], losses[0], 1e-6 * losses[0]);
    EXPECT_NEAR(norms[i], norms[0], 1e-5 * norms[0]);
    EXPECT_LT((weights[i] - weights[0]).abs().max().item<double>(), 1e-6);
  }
}

// The gradient norm against a central difference of the loss along the gradient itself.
TEST(Gradient, MatchesAFiniteDifference) {
  for (bool tied : {false, true}) {
    Trial run(sgd(), tied);
    double here = 0, there = 0;
    const double rate = 1e-3;
    const double norm = run.update({{0, 1, 2, 3}}, rate, &here).grad_norm;
    run.update({{0, 1, 2, 3}}, 0.0, &there);
    // One step of SGD lowers the loss by rate * |g|^2, to first order.
    EXPECT_NEAR((here - there) / rate, norm * norm, 0.02 * norm * norm);
  }
}

TEST(Lora, EveryAdapterTrainsAndTheBaseStays) {
  EngineOptions options;
  options.recompute = true;
  Trial run(options, false, lora(0.0));
  const auto before = run.weights();
  run.update({{0, 1, 2, 3}}, 1e-2);
  int changed = 0;
  for (const auto& range : run.engine->owned_state()) {
    if (!range.group->trainable()) continue;
    if (range.param->name.ends_with("lora_B.weight")) {
      EXPECT_GT(range.weight.abs().max().item<double>(), 0) << range.param->name;
      ++changed;
    }
  }
  EXPECT_EQ(changed, 14);
  int64_t base = 0;
  for (const auto& range : run.engine->owned_state()) base += range.group->trainable() ? 0 : range.count;
  EXPECT_EQ(base, run.decoder->parameters());
  EXPECT_EQ(run.decoder->trainable_parameters(), run.weights().numel() - base);
}

TEST(NonFinite, SkipsTheUpdateAndLeavesWeights) {
  Trial run(EngineOptions{});
  const auto before = run.weights();
  run.engine->begin_update();
  auto batch = tiny_batch(*run.decoder, {0}, 1.0);
  batch.loss_scale = std::numeric_limits<double>::infinity();
  run.engine->micro_step(&batch, true);
  const auto result = run.engine->finish_update(1e-2);
  EXPECT_TRUE(result.skipped);
  EXPECT_TRUE(at::equal(before, run.weights()));
  EXPECT_EQ(run.engine->updates_done(), 0);
}

TEST(Clipping, ScalesTheStepNotTheReportedNorm) {
  EngineOptions free = sgd(), clipped = sgd();
  clipped.max_grad_norm = 0.01;
  Trial a(free), b(clipped);
  const auto start = a.weights();
  const double norm = a.update({{0, 1}}, 1.0).grad_norm;
  EXPECT_EQ(b.update({{0, 1}}, 1.0).grad_norm, norm);
  EXPECT_NEAR((b.weights() - start).norm().item<double>(), 0.01, 1e-4);
  EXPECT_NEAR((a.weights() - start).norm().item<double>(), norm, 1e-3 * norm);
}

TEST(Bf16, KeepsFp32Masters) {
  EngineOptions options;
  options.compute = at::kBFloat16;
  options.max_grad_norm = 1.0;
  Trial run(options);
  for (int i = 0; i < 20; ++i) run.update({{0, 1, 2, 3}}, 5e-4);
  double moved = 0;
  for (const auto& range : run.engine->owned_state()) {
    EXPECT_EQ(range.weight.scalar_type(), at::kFloat);
    if (range.param->name == "model.norm.weight") moved = (range.weight - 1.0).abs().max().item<double>();
  }
  EXPECT_GT(moved, 1e-3);
  EXPECT_LT(moved, 1.1e-2);
}

TEST(Evaluate, IsTheTrainingLossWithoutChangingAnything) {
  Trial run(EngineOptions{});
  const auto before = run.weights();
  auto batch = tiny_batch(*run.decoder, {0, 1, 2}, 1.0);
  batch.training = false;
  const double first = run.engine->evaluate(&batch);
  EXPECT_EQ(run.engine->evaluate(&batch), first);
  EXPECT_EQ(run.engine->evaluate(nullptr), 0);
  double loss = 0;
  run.update({{0, 1, 2}}, 0.0, &loss);
  EXPECT_NEAR(first / static_cast<double>(tiny_labels({0, 1, 2})), loss, 1e-6);
  EXPECT_TRUE(at::equal(before, run.weights()));
}

}  // namespace
}  // namespace aitraining::engine
