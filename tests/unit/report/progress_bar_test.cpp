#include "progress_bar.h"

#include <gtest/gtest.h>

namespace aitraining::report {
namespace {

BarState state_of(int64_t step, int64_t total) {
  return {.step = step,
          .total = total,
          .loss = 1.23456,
          .learning_rate = 3e-5,
          .tokens_per_second = 131.4,
          .memory_bytes = 3ull << 30,
          .seconds_left = 3723};
}

TEST(RenderBar, ShowsEverythingWhenThereIsRoom) {
  EXPECT_EQ(render_bar(state_of(5, 20), 200),
            " 25% [########......................] step 5/20  loss 1.2346  lr 3.00e-05  131 tok/s  "
            "3.0 GiB  1:02:03 left");
}

TEST(RenderBar, NeverWiderThanTheTerminal) {
  for (int columns = 0; columns <= 200; ++columns) {
    EXPECT_LE(render_bar(state_of(123456, 999999), columns).size(), static_cast<size_t>(columns))
        << columns;
  }
}

TEST(RenderBar, LeavesOutTheLeastWantedFirst) {
  const std::string usual = render_bar(state_of(5, 20), 79);
  EXPECT_NE(usual.find("loss 1.2346"), std::string::npos);
  EXPECT_NE(usual.find("left"), std::string::npos);
  EXPECT_NE(usual.find("["), std::string::npos);
  EXPECT_EQ(usual.find("GiB"), std::string::npos);
  EXPECT_EQ(render_bar(state_of(5, 20), 45), " 25% step 5/20  loss 1.2346  1:02:03 left");
  EXPECT_EQ(render_bar(state_of(5, 20), 40), " 25% [###.......] step 5/20  loss 1.2346");
  EXPECT_EQ(render_bar(state_of(5, 20), 30), " 25% step 5/20  loss 1.2346");
  EXPECT_EQ(render_bar(state_of(5, 20), 7), " 25% st");
}

TEST(RenderBar, HundredPercentOnlyAtTheEnd) {
  EXPECT_EQ(render_bar(state_of(999, 1000), 200).substr(0, 4), " 99%");
  EXPECT_EQ(render_bar(state_of(1000, 1000), 200).substr(0, 37),
            "100% [##############################]");
  EXPECT_EQ(render_bar(state_of(0, 0), 200).substr(0, 4), "  0%");
}

TEST(PaceTest, CountsFromTheFirstUpdateSeen) {
  Pace pace;
  pace.start(100);
  EXPECT_FALSE(pace.seconds_left(10).has_value());
  pace.observe(5, 130);  // resumed at 4: the first update tells its own length only
  EXPECT_DOUBLE_EQ(*pace.seconds_left(10), 30.0 * 5);
  pace.observe(6, 132);
  pace.observe(7, 134);
  EXPECT_DOUBLE_EQ(*pace.seconds_left(10), 2.0 * 3);
  pace.observe(7, 999);  // the same update told twice
  EXPECT_DOUBLE_EQ(*pace.seconds_left(10), 2.0 * 3);
  pace.observe(10, 140);
  EXPECT_DOUBLE_EQ(*pace.seconds_left(10), 0.0);
}

}  // namespace
}  // namespace aitraining::report
