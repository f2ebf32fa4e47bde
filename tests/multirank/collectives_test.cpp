#include <gtest/gtest.h>

#include "support/ranks.h"

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

// Sharded traffic, with several collectives under way at once.
TEST(ProcessGroup, AllGatherAndReduceScatterOverGloo) {
  for (int ranks : {1, 2, 3, 4}) {
    const auto results = run_ranks(ranks, [](comm::ProcessGroup& group) {
      const int64_t n = 64, size = group.size(), rank = group.rank();
      auto out = at::zeros({n * size}), in_place = at::zeros({n * size});
      auto part = at::full({n}, static_cast<double>(rank + 1));
      in_place.narrow(0, rank * n, n).copy_(part);
      auto gather = group.all_gather_into_async(out, part);
      auto again = group.all_gather_into_async(in_place, in_place.narrow(0, rank * n, n));

      // Rank r adds r + 1 + (index / 1000) to every element.
      auto whole = at::arange(n * size, at::kFloat) / 1000 + static_cast<double>(rank + 1);
      auto sum = at::ones({n});
      auto space = at::empty({group.reduce_scatter_space(n * size, true)});
      auto reduce = group.reduce_scatter_sum_async({sum, whole, space, /*add=*/true, /*ordered=*/true});
      gather->wait();
      again->wait();
      reduce->wait();
      AIT_REQUIRE(at::equal(out, in_place));
      for (int64_t r = 0; r < size; ++r) AIT_REQUIRE(out[r * n].item<double>() == static_cast<double>(r + 1));
      const auto index = at::arange(rank * n, (rank + 1) * n, at::kFloat) / 1000;
      auto expected = index + 1.0;
      for (int64_t r = 1; r < size; ++r) expected.add_(index + static_cast<double>(r + 1));
      AIT_REQUIRE(at::equal(sum, expected + 1));
      AIT_REQUIRE(group.traffic().all_gathers == (size > 1 ? 2u : 0u));
      AIT_REQUIRE(group.traffic().reduced == (size > 1 ? static_cast<uint64_t>(n * size) : 0u));
    });
    EXPECT_EQ(results, std::vector<int>(static_cast<size_t>(ranks), 0));
  }
}

}  // namespace
}  // namespace aitraining
