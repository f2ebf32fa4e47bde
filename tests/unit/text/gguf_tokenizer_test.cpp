#include <gtest/gtest.h>

#include "byte_alphabet.h"
#include "support/expect_error.h"
#include "support/text_fixtures.h"
#include "support/weight_files.h"

namespace aitraining::text {
namespace {

using namespace test;
using Ids = std::vector<int32_t>;

constexpr int32_t kTwoBlanks = 256, kTwelve = 257, kXyz = 258, kStart = 259, kEnd = 260,
                  kThink = 261, kUnusedId = 262;

// 256 bytes, three words (only two of which merges reach), two control tokens, a user-defined one,
// an unused one.
GgufBuilder builder(const std::string& pre) {
  auto tokens = byte_characters();
  for (const char* more : {"ĠĠ", "12", "xyz", "<|im_start|>", "<|im_end|>", "<think>", "[PAD262]"})
    tokens.push_back(more);
  std::vector<int32_t> types(tokens.size(), 1);
  types[kStart] = types[kEnd] = 3;
  types[kThink] = 4;
  types[kUnusedId] = 5;
  GgufBuilder file;
  file.string("general.architecture", "llama").u32("llama.context_length", 4096);
  file.string("tokenizer.ggml.model", "gpt2").strings("tokenizer.ggml.tokens", tokens);
  file.strings("tokenizer.ggml.merges", {"Ġ Ġ", "1 2"});
  file.value("tokenizer.ggml.token_type", 9,
             raw<uint32_t>(5) + raw<uint64_t>(types.size()) + raw_all(types));
  file.u32("tokenizer.ggml.bos_token_id", kStart).u32("tokenizer.ggml.eos_token_id", kEnd);
  if (!pre.empty()) file.string("tokenizer.ggml.pre", pre);
  return file;
}

TextAssets open(const GgufBuilder& file) {
  const TempDir folder;
  return open_text_assets(folder.write("model.gguf", file.bytes()));
}

Ids encode(const std::string& pre, const std::string& text) {
  return open(builder(pre)).tokenizer.encode(text, false).ids;
}

TEST(GgufTokenizer, SplitsAsTheNamedPreTokenizer) {
  const std::string text = "a  12";
  EXPECT_EQ(encode("smollm", text), (Ids{'a', kTwoBlanks, '1', '2'}));  // digits first, one by one
  EXPECT_EQ(encode("default", text),
            (Ids{'a', ' ', ' ', kTwelve}));  // the last blank goes with the number
  EXPECT_EQ(encode("", text), (Ids{'a', ' ', ' ', kTwelve}));
  EXPECT_EQ(encode("llama-bpe", text), (Ids{'a', ' ', ' ', kTwelve}));  // up to three digits
  EXPECT_EQ(encode("qwen2", text), (Ids{'a', ' ', ' ', '1', '2'}));
}

TEST(GgufTokenizer, LlamaTakesWholeWordsWithoutMerges) {
  EXPECT_EQ(encode("llama-bpe", "xyz"), (Ids{kXyz}));
  EXPECT_EQ(encode("default", "xyz"), (Ids{'x', 'y', 'z'}));
}

TEST(GgufTokenizer, QwenComposesCharacters) {
  EXPECT_EQ(encode("qwen2", "e\xcc\x81"), (Ids{0xc3, 0xa9}));
  EXPECT_EQ(encode("smollm", "e\xcc\x81"), (Ids{'e', 0xcc, 0x81}));
}

TEST(GgufTokenizer, ControlAndUserDefinedTokensStayWhole) {
  const auto assets = open(builder("smollm"));
  EXPECT_EQ(assets.tokenizer.encode("<|im_start|><think>[PAD262]", false).ids.front(), kStart);
  EXPECT_EQ(assets.tokenizer.encode("a<think>b", false).ids, (Ids{'a', kThink, 'b'}));
  EXPECT_TRUE(assets.tokenizer.is_special(kEnd));
  EXPECT_FALSE(assets.tokenizer.is_special(kThink));
  EXPECT_FALSE(assets.tokenizer.id_to_token(kUnusedId).has_value());
  EXPECT_EQ(assets.tokenizer.decode({kTwoBlanks, kTwelve, kEnd}, true), "  12");
}

TEST(GgufTokenizer, BosAndEosAsTheFileOrTheFamilySays) {
  const auto ids = [](GgufBuilder file) { return open(file).tokenizer.encode("a", true).ids; };
  EXPECT_EQ(ids(builder("smollm")), (Ids{'a'}));
  EXPECT_EQ(ids(builder("llama-bpe")), (Ids{kStart, 'a'}));
  EXPECT_EQ(ids(builder("llama-bpe").flag("tokenizer.ggml.add_bos_token", false)), (Ids{'a'}));
  EXPECT_EQ(ids(builder("qwen2")
                    .flag("tokenizer.ggml.add_bos_token", true)
                    .flag("tokenizer.ggml.add_eos_token", true)),
            (Ids{kStart, 'a', kEnd}));
}

TEST(GgufTokenizer, MakesTheFilesOfAFolderThatReadsTheSame) {
  const auto assets = open(builder("smollm").string("tokenizer.chat_template", kC0));
  EXPECT_EQ(assets.bos->id, kStart);
  EXPECT_EQ(assets.eos->text, "<|im_end|>");
  EXPECT_EQ(assets.model_max_length, 4096);
  EXPECT_EQ(assets.chat_template->source(), kC0);
  const TempDir folder;
  for (const auto& [name, content] : assets.files) folder.write(name, content);
  const auto again = load_text_assets(folder.path());
  const std::string text = "Hé  12 <|im_end|><think> xyz\n\n  3";
  EXPECT_EQ(again.tokenizer.encode(text, true).ids, assets.tokenizer.encode(text, true).ids);
  EXPECT_EQ(again.files, assets.files);
  EXPECT_EQ(again.eos->id, kEnd);
  EXPECT_EQ(again.model_max_length, 4096);
}

TEST(GgufTokenizer, OtherKindsSayWhatIsSupported) {
  GgufBuilder sentencepiece;
  sentencepiece.string("tokenizer.ggml.model", "llama");
  expect_user_error([&] { open(sentencepiece); }, {"model.gguf", "\"llama\"", "gpt2"});
  expect_user_error([&] { open(builder("falcon")); }, {"model.gguf", "\"falcon\"", "smollm"});
  expect_user_error([&] { open(GgufBuilder().string("general.name", "x")); },
                    {"model.gguf", "no tokenizer"});
}

GgufBuilder tiny(const std::vector<std::string>& tokens, const std::vector<std::string>& merges) {
  GgufBuilder file;
  file.string("tokenizer.ggml.model", "gpt2").strings("tokenizer.ggml.tokens", tokens);
  file.strings("tokenizer.ggml.merges", merges);
  return file;
}

TEST(GgufTokenizer, ContradictionsAreErrors) {
  expect_user_error([] { open(tiny({"a", "b", "a"}, {})); }, {"twice", "\"a\"", "id 2"});
  expect_user_error([] { open(tiny({"a"}, {"ab"})); }, {"merges", "\"ab\""});
  expect_user_error([] { open(tiny({"a"}, {"a b c"})); }, {"merges", "\"a b c\""});
  expect_user_error([] { open(tiny({"a"}, {"a b"})); },
                    {"model.gguf"});  // a merge of pieces that are no tokens
  expect_user_error([] { open(tiny({"a"}, {}).u32("tokenizer.ggml.bos_token_id", 7)); },
                    {"bos_token_id", "7", "1 tokens"});
  const std::string control = raw<uint32_t>(5) + raw<uint64_t>(1) + raw<int32_t>(3);
  expect_user_error(
      [&] { open(tiny({"\xff"}, {}).value("tokenizer.ggml.token_type", 9, control)); },
      {"model.gguf", "UTF-8"});
  expect_user_error(
      [&] { open(tiny({"a", "b"}, {}).value("tokenizer.ggml.token_type", 9, control)); },
      {"token_type", "1 entries", "2"});
}

TEST(ByteAlphabet, IsTheTableOfByteLevelBpe) {
  const auto expected = byte_characters();
  for (int byte = 0; byte < 256; ++byte) EXPECT_EQ(byte_alphabet()[byte], expected[byte]) << byte;
  EXPECT_EQ(byte_spelled(" \n"), "ĠĊ");
  EXPECT_TRUE(is_byte_spelled("Ġab"));
  EXPECT_FALSE(is_byte_spelled("a b"));
  EXPECT_FALSE(is_byte_spelled("中"));
  EXPECT_FALSE(is_byte_spelled("\xff"));
}

}  // namespace
}  // namespace aitraining::text
