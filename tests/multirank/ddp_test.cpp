#include <gtest/gtest.h>

#include <fstream>

#include "aitraining/engine/engine.h"
#include "support/ranks.h"
#include "support/tiny_model.h"

namespace aitraining {
namespace {

using testing::run_ranks;

TEST(ProcessGroup, CollectivesOverGloo) {
  const auto results = run_ranks(3, [](comm::ProcessGroup& group) {
    auto sum = at::full({5}, static_cast<double>(group.rank() + 1));
    group.all_reduce_sum(sum);
    AIT_REQUIRE(at::equal(sum, at::full({5}, 6.0)));
    AIT_REQUIRE(group.sum({1.0, static_cast<double>(group.rank())}) == (std::vector<double>{3.0, 3.0}));
    AIT_REQUIRE(group.max(group.rank()) == 2.0);
    auto value = at::full({2}, static_cast<double>(group.rank()));
    group.broadcast(value, 1);
    AIT_REQUIRE(at::equal(value, at::full({2}, 1.0)));
    const auto all = group.all_gather(at::full({1}, static_cast<double>(group.rank())));
    AIT_REQUIRE(all.size() == 3 && all[2].item<double>() == 2.0);
    group.barrier();
  });
  EXPECT_EQ(results, std::vector<int>(3, 0));
}

// A rank that dies is noticed by the others as an error of the environment, not as a hang.
TEST(ProcessGroup, DeadPeerIsAnError) {
  const auto results = run_ranks(2, [](comm::ProcessGroup& group) {
    group.barrier();
    if (group.rank() == 1) ::_exit(7);
    try {
      auto tensor = at::ones({1000});
      group.all_reduce_sum(tensor);
    } catch (const comm::PeerLostError&) {
      return;
    }
    throw std::runtime_error("the dead peer was not noticed");
  });
  EXPECT_EQ(results, (std::vector<int>{0, 7}));
}

struct Outcome {
  std::vector<double> losses, norms;
  at::Tensor weights;
};

// Eight updates over 12 rows each; this rank takes every world-size-th row, two rows a micro-batch.
Outcome train(comm::ProcessGroup& group, bool lora) {
  std::optional<model::LoraOptions> with;
  if (lora) with = model::LoraOptions{4, 8, 0.2, "all-linear"};
  model::Decoder decoder(testing::tiny_config(true), with);
  engine::EngineOptions options;
  engine::Engine engine(decoder.chain(), group, options);
  engine.load(testing::tiny_weights(), [](const ops::ParamGroup& g) { return g.name() != "adapters"; });
  engine.load(model::adapter_initialiser(3), [](const ops::ParamGroup& g) { return g.name() == "adapters"; });
  Outcome outcome;
  for (int64_t update = 0; update < 8; ++update) {
    std::vector<int64_t> all, mine;
    for (int64_t i = 0; i < 12; ++i) {
      all.push_back(update * 12 + i);
      if (i % group.size() == group.rank()) mine.push_back(all.back());
    }
    const auto labels = static_cast<double>(testing::tiny_labels(all));
    engine.begin_update();
    double sum = 0;
    const int64_t micros = 12 / group.size();
    for (int64_t m = 0; m < micros; ++m) {
      const auto batch = testing::tiny_batch(decoder, {mine[static_cast<size_t>(m)]}, labels);
      sum += engine.micro_step(&batch, m + 1 == micros);
    }
    outcome.norms.push_back(engine.finish_update(1e-3).grad_norm);
    outcome.losses.push_back(group.sum({sum})[0] / labels);
    const double high = static_cast<double>(engine.weights_checksum() >> 32);
    AIT_REQUIRE(group.max(high) == high && -group.max(-high) == high);
  }
  std::vector<at::Tensor> flats;
  for (const auto& range : engine.owned_state()) flats.push_back(range.weight.clone());
  if (!flats.empty()) outcome.weights = at::cat(flats);
  return outcome;
}

class RankCounts : public ::testing::TestWithParam<std::tuple<int, bool>> {};

TEST_P(RankCounts, LossesAndWeightsAreThoseOfOneRank) {
  const auto [ranks, lora] = GetParam();
  const auto results = run_ranks(ranks, [lora = lora](comm::ProcessGroup& group) {
    const auto outcome = train(group, lora);
    auto alone_group = comm::make_process_group({});
    const auto alone = train(*alone_group, lora);
    for (size_t i = 0; i < alone.losses.size(); ++i) {
      AIT_REQUIRE(std::abs(outcome.losses[i] - alone.losses[i]) <= 1e-6 * alone.losses[i]);
      AIT_REQUIRE(std::abs(outcome.norms[i] - alone.norms[i]) <= 1e-5 * alone.norms[i]);
    }
    if (group.rank() == 0) {
      AIT_REQUIRE((outcome.weights - alone.weights).abs().max().item<double>() <= 1e-5);
    }
  });
  EXPECT_EQ(results, std::vector<int>(static_cast<size_t>(ranks), 0));
}

INSTANTIATE_TEST_SUITE_P(Ddp, RankCounts, ::testing::Combine(::testing::Values(2, 3, 4), ::testing::Bool()));

}  // namespace
}  // namespace aitraining
