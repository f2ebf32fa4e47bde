#include "console_lines.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace aitraining::report {
namespace {

TEST(PythonFloat, FollowsReprOfPython) {
  EXPECT_EQ(python_float(0.5), "0.5");
  EXPECT_EQ(python_float(1), "1.0");
  EXPECT_EQ(python_float(0), "0.0");
  EXPECT_EQ(python_float(-2), "-2.0");
  EXPECT_EQ(python_float(3e-5), "3e-05");
  EXPECT_EQ(python_float(0.0001), "0.0001");
  EXPECT_EQ(python_float(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(python_float(1e16), "1e+16");
  EXPECT_EQ(python_float(1e15), "1000000000000000.0");
  EXPECT_EQ(python_float(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(python_float(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(PythonFloat, RoundsBeforeItWrites) {
  EXPECT_EQ(rounded(1.23449999, 4), "1.2345");
  EXPECT_EQ(rounded(5.80338915, 6), "5.803389");
  EXPECT_EQ(significant(8.0 / 9600, 7), "0.0008333333");
  EXPECT_EQ(significant(2e-5, 9), "2e-05");
}

TEST(StepLine, HasTheReferencesKeysFirst) {
  const StepRecord record{.step = 12,
                          .epoch = 0.5,
                          .loss = 1.2345,
                          .grad_norm = 0.98,
                          .learning_rate = 3e-5,
                          .tokens_per_second = 131.26,
                          .memory_bytes = 3ull << 30};
  EXPECT_EQ(step_line(record, 3723),
            "{'loss': 1.2345, 'grad_norm': 0.98, 'learning_rate': 3e-05, 'epoch': 0.5, 'step': 12, "
            "'tokens_per_second': 131.3, 'memory': '3.0 GiB', 'time_left': '1:02:03'}");
}

TEST(StepLine, LeavesOutWhatIsNotKnownAndAddsTheChecksum) {
  StepRecord record{.step = 1};
  EXPECT_EQ(step_line(record, -1).find("time_left"), std::string::npos);
  EXPECT_EQ(step_line(record, -1).find("weights_checksum"), std::string::npos);
  record.weights_checksum = "00ff";
  EXPECT_NE(step_line(record, -1).find("'weights_checksum': '00ff'}"), std::string::npos);
}

TEST(EvalLine, WithTokens) {
  EXPECT_EQ(eval_line({.step = 5, .epoch = 1, .loss = 2.25, .num_tokens = 40, .seconds = 1.5}),
            "{'eval_loss': 2.25, 'eval_runtime': 1.5, 'epoch': 1.0, 'step': 5, 'eval_tokens': 40}");
}

TEST(EvalLine, WithoutTrainedTokensThereIsNoNumber) {
  const std::string line =
      eval_line({.step = 5, .epoch = 1, .loss = {}, .num_tokens = 0, .seconds = 1.5});
  EXPECT_EQ(
      line,
      "{'eval_note': 'no tokens', 'eval_runtime': 1.5, 'epoch': 1.0, 'step': 5, 'eval_tokens': 0}");
}

TEST(EndLine, HasTheReferencesKeysInOrder) {
  const std::string line = end_line({.steps = 15,
                                     .epoch = 3,
                                     .seconds = 60.5,
                                     .train_loss = 0.75,
                                     .samples_per_second = 1.98347,
                                     .steps_per_second = 0.24793,
                                     .tokens_per_second = 140});
  EXPECT_EQ(line.rfind("{'train_runtime': 60.5, 'train_samples_per_second': 1.983, "
                       "'train_steps_per_second': 0.248, "
                       "'train_loss': 0.75, 'epoch': 3.0, ",
                       0),
            0u);
}

TEST(SummaryBlock, AlignsValues) {
  EXPECT_EQ(summary_block({{"Model", "SmolLM2"}, {"Data rows", "40"}, {"Größe", "x"}}),
            "Model      SmolLM2\nData rows  40\nGröße      x\n");
  EXPECT_EQ(summary_block({{"A", "one\ntwo"}}), "A  one\n   two\n");
  EXPECT_EQ(summary_block({}), "");
}

}  // namespace
}  // namespace aitraining::report
