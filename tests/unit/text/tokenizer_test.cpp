#include "aitraining/text/tokenizer.h"

#include <gtest/gtest.h>

#include <thread>

#include "support/expect_error.h"
#include "support/text_fixtures.h"

namespace aitraining::text {
namespace {

using namespace test;
using Ids = std::vector<int32_t>;
using Offsets = std::vector<uint32_t>;

Tokenizer t0(const T0Options& options = {}) {
  return Tokenizer::from_json(t0_json(options).dump(), "T0");
}

Tokenizer from(const nlohmann::ordered_json& json) {
  return Tokenizer::from_json(json.dump(), "changed T0");
}

TEST(Tokenizer, OneByteIsOneToken) {
  const auto encoding = t0().encode("Hi\n", false);
  EXPECT_EQ(encoding.ids, (Ids{'H', 'i', '\n'}));
  EXPECT_EQ(encoding.begin, (Offsets{0, 1, 2}));
  EXPECT_EQ(encoding.end, (Offsets{1, 2, 3}));
}

TEST(Tokenizer, SpecialTokensInTheTextAreRecognised) {
  const auto encoding = t0().encode("a<|im_end|>b", false);
  EXPECT_EQ(encoding.ids, (Ids{'a', kImEnd, 'b'}));
  EXPECT_EQ(encoding.begin, (Offsets{0, 1, 11}));
  EXPECT_EQ(encoding.end, (Offsets{1, 11, 12}));
}

TEST(Tokenizer, OffsetsAreBytesAndAPartOfACharacterHasItsWholeRange) {
  // "é" has 2 bytes, "😀" 4.
  const auto encoding = t0().encode("é<s>😀x", false);
  EXPECT_EQ(encoding.ids, (Ids{0xc3, 0xa9, kBos, 0xf0, 0x9f, 0x98, 0x80, 'x'}));
  EXPECT_EQ(encoding.begin, (Offsets{0, 0, 2, 5, 5, 5, 5, 9}));
  EXPECT_EQ(encoding.end, (Offsets{2, 2, 5, 9, 9, 9, 9, 10}));
}

TEST(Tokenizer, OffsetsBelongToTheTextBeforeNormalization) {
  auto json = t0_json();
  json["normalizer"] = {{"type", "NFC"}};
  const auto encoding = from(json).encode("e\xcc\x81x", false);  // e + combining acute -> é
  EXPECT_EQ(encoding.ids, (Ids{0xc3, 0xa9, 'x'}));
  EXPECT_EQ(encoding.begin, (Offsets{0, 0, 3}));
  EXPECT_EQ(encoding.end,
            (Offsets{1, 1, 4}));  // the composed character counts as the letter it began with
}

TEST(Tokenizer, BlanksHaveTheirRangeEvenWhenTheFileTrimsOffsets) {
  auto json = t0_json();
  json["post_processor"] = {{"type", "ByteLevel"},
                            {"add_prefix_space", false},
                            {"trim_offsets", true},
                            {"use_regex", false}};
  const auto encoding = from(json).encode(" a ", false);
  EXPECT_EQ(encoding.begin, (Offsets{0, 1, 2}));
  EXPECT_EQ(encoding.end, (Offsets{1, 2, 3}));
}

TEST(Tokenizer, PostProcessorRunsOnDemandAndItsTokensHoldNoInput) {
  const auto tokenizer = t0({.bos_post_processor = true, .added = {}});
  EXPECT_EQ(tokenizer.encode("ab", false).ids, (Ids{'a', 'b'}));
  const auto with = tokenizer.encode("ab", true);
  EXPECT_EQ(with.ids, (Ids{kBos, 'a', 'b'}));
  EXPECT_EQ(with.begin, (Offsets{0, 0, 1}));
  EXPECT_EQ(with.end, (Offsets{0, 1, 2}));
}

TEST(Tokenizer, BatchEqualsOneByOne) {
  const auto tokenizer = t0({.bos_post_processor = true, .added = {}});
  std::vector<std::string> texts;
  for (int i = 0; i < 300; ++i)
    texts.push_back(std::string(i % 7, 'a') + "é<|im_end|>" + std::to_string(i));
  texts[5].clear();
  const auto batch = tokenizer.encode_batch(texts, true);
  ASSERT_EQ(batch.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto one = tokenizer.encode(texts[i], true);
    EXPECT_EQ(batch[i].ids, one.ids);
    EXPECT_EQ(batch[i].begin, one.begin);
    EXPECT_EQ(batch[i].end, one.end);
  }
  EXPECT_TRUE(tokenizer.encode_batch({}, false).empty());
}

TEST(Tokenizer, LimitsStoredInTheFileDoNotCutOrFill) {
  auto json = t0_json();
  json["truncation"] = {
      {"direction", "Right"}, {"max_length", 2}, {"strategy", "LongestFirst"}, {"stride", 0}};
  json["padding"] = {{"strategy", {{"Fixed", 8}}},
                     {"direction", "Right"},
                     {"pad_to_multiple_of", nullptr},
                     {"pad_id", kPad},
                     {"pad_type_id", 0},
                     {"pad_token", "<pad>"}};
  EXPECT_EQ(from(json).encode("abcd", false).ids, (Ids{'a', 'b', 'c', 'd'}));
}

TEST(Tokenizer, FlagsOfAddedTokensAreObeyed) {
  auto json = t0_json();
  const auto add = [&](int id, const char* content, const char* flag, bool special) {
    nlohmann::ordered_json token = {
        {"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
        {"rstrip", false}, {"normalized", false}, {"special", special}};
    token[flag] = true;
    json["added_tokens"].push_back(token);
  };
  add(261, "<L>", "lstrip", true);
  add(262, "<R>", "rstrip", true);
  add(263, "<W>", "single_word", true);
  add(264, "<N>", "normalized", false);
  const auto tokenizer = from(json);
  EXPECT_EQ(tokenizer.encode("a <L> b", false).ids, (Ids{'a', 261, ' ', 'b'}));
  EXPECT_EQ(tokenizer.encode("a <R> b", false).ids, (Ids{'a', ' ', 262, 'b'}));
  EXPECT_EQ(tokenizer.encode("x<W>", false).ids, (Ids{'x', '<', 'W', '>'}));
  EXPECT_EQ(tokenizer.encode("x <W>", false).ids, (Ids{'x', ' ', 263}));
  EXPECT_TRUE(tokenizer.is_special(261));
  EXPECT_FALSE(tokenizer.is_special(264));
  EXPECT_EQ(tokenizer.size(), 265);
  EXPECT_FALSE(tokenizer.id_to_token(265).has_value());
}

TEST(Tokenizer, AGapInTheIdsOfAddedTokensIsClosedWithAWarning) {
  auto json = t0_json({.bos_post_processor = false, .added = {"<far>"}});
  json["added_tokens"].back()["id"] = 270;
  testing::internal::CaptureStderr();
  const auto tokenizer = from(json);
  EXPECT_NE(
      testing::internal::GetCapturedStderr().find("<far> is written with id 270 but has id 261"),
      std::string::npos);
  EXPECT_EQ(tokenizer.encode("<far>", false).ids, (Ids{261}));
}

TEST(Tokenizer, AGapInTheVocabularyStays) {
  auto json = t0_json();
  for (const auto& special : json["added_tokens"])
    json["model"]["vocab"][special["content"]] = special["id"];
  json["model"]["vocab"]["<far>"] = 270;
  auto token = json["added_tokens"].back();
  token["content"] = "<far>";
  token["id"] = 270;
  json["added_tokens"].push_back(token);
  const auto tokenizer = from(json);
  EXPECT_EQ(tokenizer.encode("a<far><s>", false).ids, (Ids{'a', 270, kBos}));
  EXPECT_EQ(tokenizer.size(), 271);
  EXPECT_FALSE(tokenizer.id_to_token(265).has_value());
}

TEST(Tokenizer, LooksUpTokens) {
  const auto tokenizer = t0();
  EXPECT_EQ(tokenizer.token_to_id("<|im_end|>"), kImEnd);
  EXPECT_FALSE(tokenizer.token_to_id("<|nope|>").has_value());
  EXPECT_EQ(tokenizer.id_to_token(kPad), "<pad>");
  EXPECT_FALSE(tokenizer.id_to_token(-1).has_value());
  EXPECT_FALSE(tokenizer.id_to_token(9999).has_value());
  EXPECT_TRUE(tokenizer.is_special(kBos));
  EXPECT_FALSE(tokenizer.is_special('a'));
  EXPECT_FALSE(tokenizer.is_special(-1));
  EXPECT_EQ(tokenizer.size(), 261);
}

TEST(Tokenizer, DecodesBack) {
  const auto tokenizer = t0();
  const std::string text = "né <|im_end|>\n😀";
  const auto ids = tokenizer.encode(text, false).ids;
  EXPECT_EQ(tokenizer.decode(ids, false), text);
  EXPECT_EQ(tokenizer.decode(ids, true), "né \n😀");
}

TEST(Tokenizer, ServesSeveralThreads) {
  const auto tokenizer = t0();
  const auto expected = tokenizer.encode("shared <s> text", false).ids;
  std::vector<int> equal(4, 0);
  std::vector<std::thread> threads;
  for (auto& count : equal) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i)
        count += tokenizer.encode("shared <s> text", false).ids == expected;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(equal, std::vector<int>(4, 200));
}

TEST(Tokenizer, BrokenFilesAreErrorsThatNameThem) {
  const auto load = [](const std::string& json) {
    return [json] { Tokenizer::from_json(json, "m/tokenizer.json"); };
  };
  const std::string whole = t0_json().dump();
  expect_user_error(load(""), {"m/tokenizer.json"});
  expect_user_error(load("[1, 2]"), {"m/tokenizer.json"});
  expect_user_error(load("{\"model\": {\"type\": \"Nonsense\"}}"), {"m/tokenizer.json"});
  expect_user_error(load(whole.substr(0, whole.size() / 2)), {"m/tokenizer.json", "EOF"});
  expect_user_error(load("{\"model\": " + std::string(100'000, '[')),
                    {"m/tokenizer.json", "recursion limit"});
  expect_user_error(load("{\"model\": \xff\xfe}"), {"m/tokenizer.json"});
}

TEST(Tokenizer, BadUtf8InATextIsAnErrorWithItsPlace) {
  expect_user_error([] { t0().encode_batch({"good", "ab\xff"}, false); },
                    {"text 1", "UTF-8", "byte 2"});
  // A character cut in two between texts is broken in both.
  expect_user_error([] { t0().encode_batch({"\xc3", "\xa9"}, false); }, {"text 0", "UTF-8"});
}

}  // namespace
}  // namespace aitraining::text
