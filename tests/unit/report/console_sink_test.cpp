#include "console_sink.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "aitraining/core/log.h"

namespace aitraining::report {
namespace {

// A sink that writes into memory, with a clock and a width that the test turns.
class ConsoleSinkTest : public testing::Test {
 protected:
  ~ConsoleSinkTest() override {
    std::fclose(file_);
    std::free(memory_);
  }
  ConsoleOptions options(bool bar) {
    return {.out = file_,
            .bar = bar,
            .columns = [this] { return columns_; },
            .seconds = [this] { return now_; }};
  }
  std::string taken() {
    std::fflush(file_);
    const std::string all(memory_, size_);
    const std::string fresh = all.substr(read_);
    read_ = all.size();
    return fresh;
  }
  char* memory_ = nullptr;
  size_t size_ = 0, read_ = 0;
  std::FILE* file_ = open_memstream(&memory_, &size_);
  double now_ = 0;
  int columns_ = 80;
};

StepRecord record_of(int64_t step) {
  return {.step = step, .epoch = 0.25, .loss = 2, .learning_rate = 1e-3};
}

TEST_F(ConsoleSinkTest, PipedWritesPlainLinesOnly) {
  ConsoleSink sink(options(false));
  sink.on_start({.lines = {{"Model", "tiny"}}, .total_updates = 4});
  EXPECT_EQ(taken(), "Model  tiny\n");
  now_ = 10;
  sink.on_update(1, record_of(1));
  EXPECT_EQ(taken(), "");
  now_ = 12;
  sink.on_update(2, record_of(2));
  sink.on_step(record_of(2));
  const std::string line = taken();
  EXPECT_EQ(line.rfind("{'loss': 2.0, ", 0), 0u) << line;
  EXPECT_NE(line.find("'step': 2"), std::string::npos);
  EXPECT_NE(line.find("'time_left': '4.0 s'}\n"), std::string::npos)
      << line;  // two updates of two seconds
  sink.on_eval({.step = 4, .epoch = 1, .loss = 1.5, .num_tokens = 3, .seconds = 1});
  sink.on_end({.steps = 4, .epoch = 1});
  const std::string rest = taken();
  EXPECT_EQ(rest.rfind("{'eval_loss': 1.5", 0), 0u) << rest;
  EXPECT_NE(rest.find("\n{'train_runtime': "), std::string::npos) << rest;
  EXPECT_EQ(rest.find('\r'), std::string::npos);
  EXPECT_EQ(rest.find('\033'), std::string::npos);
}

TEST_F(ConsoleSinkTest, BarIsDrawnOverItselfAndNotTooOften) {
  ConsoleSink sink(options(true));
  sink.on_start({.total_updates = 3});
  EXPECT_EQ(taken(), "");
  sink.on_update(1, record_of(1));
  const std::string first = taken();
  EXPECT_EQ(first.rfind("\r 33% [", 0), 0u) << first;
  EXPECT_EQ(first.find('\n'), std::string::npos);
  now_ = 0.05;
  sink.on_update(2, record_of(2));
  EXPECT_EQ(taken(), "");
  now_ = 0.06;
  sink.on_update(3, record_of(3));  // the last one is always shown
  EXPECT_EQ(taken().rfind("\r100% [", 0), 0u);
}

TEST_F(ConsoleSinkTest, BarKeepsInsideTheTerminal) {
  ConsoleSink sink(options(true));
  sink.on_start({.total_updates = 100});
  for (int width : {1, 2, 20, 39, 60, 79, 120}) {
    columns_ = width;
    sink.on_step(record_of(width));
    std::string drawn = taken();
    ASSERT_EQ(drawn.front(), '\r');
    ASSERT_EQ(drawn.substr(drawn.size() - 3), "\033[K");
    EXPECT_LT(drawn.size() - 4, static_cast<size_t>(width));
  }
}

TEST_F(ConsoleSinkTest, LinesGoAboveTheBar) {
  ConsoleSink sink(options(true));
  sink.on_start({.total_updates = 2});
  sink.on_update(1, record_of(1));
  taken();
  sink.on_eval({.step = 1, .epoch = 1, .loss = 1.5, .num_tokens = 3, .seconds = 1});
  const std::string text = taken();
  EXPECT_EQ(text.rfind("\r\033[K{'eval_loss': 1.5", 0), 0u) << text;
  EXPECT_NE(text.find("}\n\r 50% ["), std::string::npos) << text;
}

TEST_F(ConsoleSinkTest, LogLinesClearAndRedrawTheBar) {
  ConsoleSink sink(options(true));
  sink.on_start({.total_updates = 2});
  sink.on_update(1, record_of(1));
  taken();
  log::warn("something to tell");
  const std::string text = taken();
  EXPECT_EQ(text.rfind("\r\033[K\r 50% [", 0), 0u) << text;
}

TEST_F(ConsoleSinkTest, TheFinishedBarStaysAndNothingIsDrawnAfterIt) {
  ConsoleSink sink(options(true));
  sink.on_start({.total_updates = 1});
  sink.on_update(1, record_of(1));
  taken();
  sink.on_end({.steps = 1, .epoch = 1});
  const std::string text = taken();
  EXPECT_EQ(text.rfind("\n{'train_runtime'", 0), 0u) << text;
  EXPECT_EQ(text.find('\r'), std::string::npos);
  log::warn("after the end");
  EXPECT_EQ(taken(), "");
}

}  // namespace
}  // namespace aitraining::report
