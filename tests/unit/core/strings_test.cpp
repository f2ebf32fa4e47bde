#include "aitraining/core/strings.h"

#include <gtest/gtest.h>

namespace aitraining {
namespace {

TEST(EditDistance, CountsSwapsAsOneAndFoldsCaseAndHyphens) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("learnign_rate", "learning_rate"), 1);
  EXPECT_EQ(edit_distance("--Batch-Size", "--batch_size"), 0);
}

TEST(Nearest, FindsWhatWasMeantAndNothingElse) {
  const std::vector<std::string> names{"lr", "epochs", "batch_size", "learning_rate"};
  EXPECT_EQ(nearest("batchsize", names), "batch_size");
  EXPECT_EQ(nearest("learnign_rate", names), "learning_rate");
  EXPECT_EQ(nearest("epoch", names), "epochs");
  EXPECT_EQ(nearest("lrr", names), "lr");
  EXPECT_EQ(nearest("something_else_entirely", names), std::nullopt);
  EXPECT_EQ(nearest("x", {}), std::nullopt);
}

TEST(Human, Bytes) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1024), "1.0 KiB");
  EXPECT_EQ(human_bytes(1024 * 1024 - 1), "1.0 MiB");
  EXPECT_EQ(human_bytes(1610612736), "1.5 GiB");
}

TEST(Human, Duration) {
  EXPECT_EQ(human_duration(4.2), "4.2 s");
  EXPECT_EQ(human_duration(59.97), "0:01:00");
  EXPECT_EQ(human_duration(3723), "1:02:03");
  EXPECT_EQ(human_duration(-1), "0.0 s");
  EXPECT_EQ(human_duration(1.0 / 0.0), "unknown");
}

TEST(Human, Count) {
  EXPECT_EQ(human_count(0), "0");
  EXPECT_EQ(human_count(999), "999");
  EXPECT_EQ(human_count(1000), "1,000");
  EXPECT_EQ(human_count(134515008), "134,515,008");
  EXPECT_EQ(human_count(-100), "-100");
  EXPECT_EQ(human_count(-1234567), "-1,234,567");
}

TEST(Split, TrimsAndDropsEmptyParts) {
  EXPECT_EQ(split(" a, b ,,c ", ','), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(split(" , ", ',').empty());
  EXPECT_EQ(join({"a", "b"}, ", "), "a, b");
  EXPECT_EQ(trim("\t x y\r\n"), "x y");
  EXPECT_EQ(to_lower("AbC"), "abc");
}

TEST(Hash64, KnownVectors) {
  EXPECT_EQ(hash64("", 0), 0xEF46DB3751D8E999ull);
  EXPECT_EQ(hash64("a", 1), 0xD24EC4F1A98C6E5Bull);
  EXPECT_EQ(hash64("abc", 3), 0x44BC2CF5AD770999ull);
  const std::string text = "Nobody inspects the spammish repetition";
  EXPECT_EQ(hash64(text.data(), text.size()), 0xFBCEA83C8A378BF1ull);
  EXPECT_NE(hash64("abc", 3, 1), hash64("abc", 3));
}

}  // namespace
}  // namespace aitraining
