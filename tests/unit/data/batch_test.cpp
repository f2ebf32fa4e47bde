#include "aitraining/data/batch.h"

#include <gtest/gtest.h>

namespace aitraining::data {
namespace {

TokenizedRows three_rows() {
  TokenizedRows rows;
  rows.add(std::vector<int32_t>{10, 11, 12}, std::vector<uint8_t>{0, 1, 1}, 1);
  rows.add(std::vector<int32_t>{20, 21}, std::vector<uint8_t>{0, 1}, 4);
  rows.add(std::vector<int32_t>{30, 31, 32, 33}, std::vector<uint8_t>{1, 0, 1, 0}, 5);
  return rows;
}

TEST(TokenizedRows, KeepsRowsApart) {
  const auto rows = three_rows();
  EXPECT_EQ(rows.size(), 3);
  EXPECT_EQ(rows.total_tokens(), 9);
  EXPECT_EQ(rows.total_trained(), 4);
  EXPECT_EQ(std::vector<int32_t>(rows.ids(1).begin(), rows.ids(1).end()), (std::vector<int32_t>{20, 21}));
  EXPECT_EQ(rows.source_row(1), 4);
  EXPECT_EQ(rows.length(2), 4);
}

TEST(TokenizedRows, FirstTokenIsNeverTrained) {
  const auto rows = three_rows();
  EXPECT_EQ(rows.trained_tokens(2), 1);
  EXPECT_EQ(rows.trained(2)[0], 0);
}

TEST(Collate, OneRowPerItemLiesEndToEnd) {
  const auto rows = three_rows();
  const auto batch = collate(rows, std::vector<Item>{{2}, {0}});
  EXPECT_EQ(batch.tokens, (std::vector<int32_t>{30, 31, 32, 33, 10, 11, 12}));
  EXPECT_EQ(batch.positions, (std::vector<int32_t>{0, 1, 2, 3, 0, 1, 2}));
  EXPECT_EQ(batch.segment_length, (std::vector<int64_t>{4, 3}));
  EXPECT_EQ(batch.segment_sample, (std::vector<int64_t>{2, 0}));
  // 32 is predicted at index 1; 11 and 12 at 4 and 5. Nothing is predicted across the seam at 3.
  EXPECT_EQ(batch.label_row, (std::vector<int32_t>{1, 4, 5}));
  EXPECT_EQ(batch.label, (std::vector<int32_t>{32, 11, 12}));
}

TEST(Collate, RowsOfAPackKeepTheirOwnPositions) {
  const auto rows = three_rows();
  const auto packed = collate(rows, std::vector<Item>{{0, 1}});
  const auto apart = collate(rows, std::vector<Item>{{0}, {1}});
  EXPECT_EQ(packed.positions, (std::vector<int32_t>{0, 1, 2, 0, 1}));
  EXPECT_EQ(packed.segment_length, apart.segment_length);
  EXPECT_EQ(packed.label_row, (std::vector<int32_t>{0, 1, 3}));
  EXPECT_EQ(packed.label, (std::vector<int32_t>{11, 12, 21}));
}

TEST(Collate, NoItemsIsAnEmptyBatch) {
  const auto batch = collate(three_rows(), {});
  EXPECT_TRUE(batch.empty());
  EXPECT_EQ(batch.num_labels(), 0);
}

}  // namespace
}  // namespace aitraining::data
