#include "aitraining/comm/preflight.h"

#include <gtest/gtest.h>

#include "support/ranks.h"

namespace aitraining {
namespace {

using testing::run_ranks;

TEST(Preflight, MeasuresEveryPair) {
  EXPECT_EQ(run_ranks(3, [](comm::ProcessGroup& group) {
    const auto found = comm::check_connections(group, 2, std::chrono::seconds(20));
    AIT_REQUIRE(found.links.size() == 6 && found.all_reduce.size() == 3);
    for (const auto& link : found.links) {
      AIT_REQUIRE(link.seconds > 0 && link.bytes_per_second > 0);
      AIT_REQUIRE(link.same_machine == (link.from / 2 == link.to / 2));
    }
    const std::string line = found.line();
    AIT_REQUIRE(line.find("2 pairs on one machine") != std::string::npos);
    AIT_REQUIRE(line.find("4 pairs between machines") != std::string::npos);
  }), (std::vector<int>{0, 0, 0}));
}

// One rank is there and does not answer: it waits for a message that never comes, until the other one is gone.
TEST(Preflight, NamesADeadPair) {
  const auto results = run_ranks(2, [](comm::ProcessGroup& group) {
    if (group.rank() == 1) {
      auto never = at::zeros({1});
      group.broadcast(never, 0);
      return;
    }
    try {
      comm::check_connections(group, 2, std::chrono::seconds(1));
    } catch (const comm::PeerLostError& e) {
      AIT_REQUIRE(std::string(e.what()).find("rank 0 cannot exchange with rank 1") != std::string::npos);
      return;
    }
    throw std::runtime_error("the dead pair was not noticed");
  });
  EXPECT_EQ(results.front(), 0);
}

TEST(Preflight, NamesSlowPairs) {
  comm::Preflight found;
  for (int from = 0; from < 4; ++from) {
    for (int to = 0; to < 4; ++to) {
      if (from != to) found.links.push_back({from, to, true, 1e-5, from == 2 && to == 3 ? 1e8 : 1e9});
    }
  }
  const auto slow = found.slow_pairs();
  ASSERT_EQ(slow.size(), 1u);
  EXPECT_NE(slow[0].find("rank 2 to rank 3"), std::string::npos);
}

}  // namespace
}  // namespace aitraining
