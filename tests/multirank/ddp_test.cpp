#include <gtest/gtest.h>

#include "support/tiny_training.h"

namespace aitraining {
namespace {

using namespace testing;

class RankCounts : public ::testing::TestWithParam<std::tuple<int, bool>> {};

TEST_P(RankCounts, LossesAndWeightsAreThoseOfOneRank) {
  const auto [ranks, lora] = GetParam();
  TinyRun run;
  run.lora = lora;
  const auto results = run_ranks(ranks, [&](comm::ProcessGroup& group) {
    const auto outcome = train_tiny(group, run);
    auto alone_group = comm::make_process_group({});
    const auto alone = train_tiny(*alone_group, run);
    AIT_REQUIRE(close(outcome.losses, alone.losses, 1e-6));
    AIT_REQUIRE(close(outcome.norms, alone.norms, 1e-5));
    if (group.rank() == 0) AIT_REQUIRE(largest_difference(outcome.weights, alone.weights) <= 1e-5);
  });
  EXPECT_EQ(results, std::vector<int>(static_cast<size_t>(ranks), 0));
}

INSTANTIATE_TEST_SUITE_P(Ddp, RankCounts, ::testing::Combine(::testing::Values(2, 3, 4), ::testing::Bool()));

}  // namespace
}  // namespace aitraining
