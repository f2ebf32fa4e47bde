#include "aitraining/data/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace aitraining::data {
namespace {

using Order = std::vector<int64_t>;

// What torch.randperm(n, generator=torch.Generator().manual_seed(seed)) gives.
TEST(RandomPermutation, IsTorchRandperm) {
  EXPECT_EQ(random_permutation(0, 42), Order{});
  EXPECT_EQ(random_permutation(1, 42), (Order{0}));
  EXPECT_EQ(random_permutation(2, 42), (Order{0, 1}));
  EXPECT_EQ(random_permutation(7, 42), (Order{1, 6, 3, 5, 4, 0, 2}));
  EXPECT_EQ(random_permutation(7, 43), (Order{3, 1, 2, 4, 5, 0, 6}));
  EXPECT_EQ(random_permutation(10, 0), (Order{4, 1, 7, 5, 3, 9, 0, 8, 6, 2}));
  EXPECT_EQ(random_permutation(5, (uint64_t{1} << 32) + 42), (Order{2, 4, 3, 0, 1}));
}

int64_t weighted_sum(const Order& order) {
  int64_t sum = 0;
  for (size_t i = 0; i < order.size(); ++i) sum += static_cast<int64_t>(i + 1) * order[i];
  return sum;
}

TEST(RandomPermutation, IsTorchRandpermForLargerSizes) {
  const auto order = random_permutation(1000, 42);
  EXPECT_EQ(Order(order.begin(), order.begin() + 6), (Order{542, 618, 816, 68, 94, 215}));
  EXPECT_EQ(weighted_sum(order), 251382058);
  EXPECT_EQ(weighted_sum(random_permutation(100000, 7)), 250095304457815);
}

TEST(UpdatesPerEpoch, LastShortWindowIsAnUpdate) {
  EXPECT_EQ(updates_per_epoch(5, {1, 4, 1}), 2);
  EXPECT_EQ(updates_per_epoch(40, {2, 4, 1}), 5);
  EXPECT_EQ(updates_per_epoch(10, {2, 4, 3}), 1);
  EXPECT_EQ(updates_per_epoch(10, {2, 1, 2}), 3);
  EXPECT_EQ(updates_per_epoch(1, {8, 8, 8}), 1);
  EXPECT_EQ(updates_per_epoch(0, {1, 1, 1}), 0);
}

TEST(EpochPlan, ShortWindowHasOneMicroBatch) {
  const EpochPlan plan(5, 42, 0, {1, 4, 1}, true);
  EXPECT_EQ(plan.updates(), 2);
  EXPECT_EQ(plan.micro_batches(0), 4);
  EXPECT_EQ(plan.micro_batches(1), 1);
  EXPECT_EQ(plan.micro_batches(2), 0);
}

TEST(EpochPlan, DealsBatchesInTurn) {
  const EpochPlan plan(10, 0, 0, {2, 2, 2}, true);  // order 4 1 7 5 3 9 0 8 6 2
  EXPECT_EQ(plan.items(0, 0, 0), (Order{4, 1}));
  EXPECT_EQ(plan.items(0, 0, 1), (Order{7, 5}));
  EXPECT_EQ(plan.items(0, 1, 0), (Order{3, 9}));
  EXPECT_EQ(plan.items(0, 1, 1), (Order{0, 8}));
  EXPECT_EQ(plan.items(1, 0, 0), (Order{6, 2}));
  EXPECT_EQ(plan.items(1, 0, 1), Order{});  // nothing left for this rank
  EXPECT_EQ(plan.items(1, 1, 0), Order{});
  EXPECT_EQ(plan.micro_batches(1), 1);
}

TEST(EpochPlan, SeedAndEpochGiveTheOrder) {
  const EpochPlan plan(7, 42, 1, {7, 1, 1}, true);
  EXPECT_EQ(plan.items(0, 0, 0), random_permutation(7, 43));
  const EpochPlan straight(3, 42, 5, {3, 1, 1}, false);
  EXPECT_EQ(straight.items(0, 0, 0), (Order{0, 1, 2}));
}

TEST(EpochPlan, EveryItemOnceWhateverTheShape) {
  for (const int64_t items : {1, 2, 3, 5, 7, 10, 23})
    for (const int64_t batch : {1, 2, 4})
      for (const int64_t accumulation : {1, 2, 4})
        for (const int64_t world : {1, 2, 3, 4}) {
          const EpochPlan plan(items, 1, 2, {batch, accumulation, world}, true);
          Order seen;
          for (int64_t u = 0; u < plan.updates(); ++u) {
            EXPECT_GT(plan.micro_batches(u), 0);
            EXPECT_FALSE(plan.items(u, 0, 0).empty());
            for (int64_t m = 0; m < plan.micro_batches(u); ++m)
              for (int64_t r = 0; r < world; ++r)
                for (const int64_t item : plan.items(u, m, r)) seen.push_back(item);
          }
          std::sort(seen.begin(), seen.end());
          Order all(items);
          std::iota(all.begin(), all.end(), 0);
          EXPECT_EQ(seen, all) << items << " items, batch " << batch << ", " << accumulation << ", ranks " << world;
          EXPECT_EQ(plan.updates(), updates_per_epoch(items, {batch, accumulation, world}));
        }
}

TEST(EpochPlan, AnUpdateHoldsTheSameItemsOnAnyNumberOfRanks) {
  const EpochPlan one(12, 3, 0, {1, 4, 1}, true), two(12, 3, 0, {1, 2, 2}, true);
  for (int64_t u = 0; u < 3; ++u) {
    Order a, b;
    for (int64_t m = 0; m < 4; ++m) a.push_back(one.items(u, m, 0).at(0));
    for (int64_t m = 0; m < 2; ++m)
      for (int64_t r = 0; r < 2; ++r) b.push_back(two.items(u, m, r).at(0));
    EXPECT_EQ(a, b);
  }
}

TokenizedRows rows_of_lengths(const std::vector<int64_t>& lengths) {
  TokenizedRows rows;
  for (const int64_t length : lengths)
    rows.add(std::vector<int32_t>(length, 7), std::vector<uint8_t>(length, 1), rows.size() + 1);
  return rows;
}

TEST(PackRows, SevenRowsMakeThreePacksOf64) {
  const auto rows = rows_of_lengths({30, 20, 40, 10, 24, 34, 34});
  const auto packs = pack_rows(rows, 64);
  // By length: 40, 34, 34, 30, 24, 20, 10. 30 joins the first 34; 24 joins the 40; 20 and 10 join the other 34.
  EXPECT_EQ(packs, (std::vector<Item>{{0, 5}, {1, 3, 6}, {2, 4}}));
}

TEST(PackRows, TakesTheFullestPackThatFits) {
  EXPECT_EQ(pack_rows(rows_of_lengths({5, 7, 3}), 10), (std::vector<Item>{{0}, {1, 2}}));
}

TEST(PackRows, FullRowsStayAlone) {
  EXPECT_EQ(pack_rows(rows_of_lengths({4, 4, 4}), 4), (std::vector<Item>{{0}, {1}, {2}}));
  EXPECT_EQ(pack_rows(rows_of_lengths({}), 4), std::vector<Item>{});
}

TEST(SingleRows, OneItemPerRow) {
  EXPECT_EQ(single_rows(rows_of_lengths({1, 2, 3})), (std::vector<Item>{{0}, {1}, {2}}));
}

}  // namespace
}  // namespace aitraining::data
