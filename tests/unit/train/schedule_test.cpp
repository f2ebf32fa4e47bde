#include "aitraining/train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "aitraining/core/error.h"

namespace aitraining::train {
namespace {

std::vector<double> rates(ScheduleKind kind, double peak, int64_t total, double ratio) {
  std::vector<double> values;
  for (int64_t u = 1; u <= total; ++u) values.push_back(learning_rate(kind, peak, u, total, warmup_updates(ratio, total)));
  return values;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-10) << "update " << i + 1;
}

TEST(Schedule, LinearWithWarmupBeginsAtZero) {
  expect_near(rates(ScheduleKind::linear, 1e-3, 6, 0.1), {0, 1e-3, 8e-4, 6e-4, 4e-4, 2e-4});
}

TEST(Schedule, LinearWithoutWarmup) {
  expect_near(rates(ScheduleKind::linear, 1e-3, 6, 0),
              {1e-3, 1e-3 * 5 / 6, 1e-3 * 4 / 6, 1e-3 * 3 / 6, 1e-3 * 2 / 6, 1e-3 / 6});
}

TEST(Schedule, ExtremesAreFinite) {
  for (auto kind : {ScheduleKind::linear, ScheduleKind::cosine, ScheduleKind::constant_with_warmup}) {
    for (double ratio : {0.0, 0.05, 1.0}) {
      for (int64_t total : {1, 2, 7}) {
        for (double rate : rates(kind, 1e-3, total, ratio)) {
          EXPECT_TRUE(std::isfinite(rate));
          EXPECT_GE(rate, 0);
          EXPECT_LE(rate, 1e-3);
        }
      }
    }
  }
}

TEST(Schedule, CosineReachesHalfInTheMiddle) {
  const auto values = rates(ScheduleKind::cosine, 2.0, 8, 0);
  EXPECT_DOUBLE_EQ(values[0], 2.0);
  EXPECT_NEAR(values[4], 1.0, 1e-12);
}

TEST(Schedule, WarmupRoundsUpButNotForBinaryNoise) {
  EXPECT_EQ(warmup_updates(0.1, 6), 1);
  EXPECT_EQ(warmup_updates(0.1, 30), 3);
  EXPECT_EQ(warmup_updates(0.1, 31), 4);
  EXPECT_EQ(warmup_updates(1.0, 5), 5);
  EXPECT_EQ(warmup_updates(0.0, 5), 0);
}

TEST(Schedule, UnknownNameIsAUserError) { EXPECT_THROW(parse_schedule("cosin"), UserError); }

TEST(Logging, AutomaticIntervalIsBounded) {
  EXPECT_EQ(automatic_logging_steps(40, 2), 4);
  EXPECT_EQ(automatic_logging_steps(3, 2), 1);
  EXPECT_EQ(automatic_logging_steps(100000, 2), 25);
}

}  // namespace
}  // namespace aitraining::train
