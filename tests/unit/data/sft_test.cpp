#include "aitraining/data/sft.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "aitraining/data/plan.h"
#include "support/expect_error.h"
#include "support/text_fixtures.h"

namespace aitraining::data {
namespace {

using nlohmann::ordered_json;
using test::expect_user_error;
using test::t0_assets;
using Ids = std::vector<int32_t>;

const SplitFile kFile{"/d/train.jsonl", "jsonl"};

std::vector<Row> rows_of(const std::vector<ordered_json>& values) {
  std::vector<Row> rows;
  for (const auto& value : values) rows.push_back({static_cast<int64_t>(rows.size()) + 1, value});
  return rows;
}

ordered_json text(const std::string& value) { return {{"text", value}}; }

ordered_json chat(const std::string& user, const std::string& assistant) {
  return {{"messages", {{{"role", "user"}, {"content", user}}, {{"role", "assistant"}, {"content", assistant}}}}};
}

Ids ids_of(const TokenizedRows& rows, int64_t row) { return {rows.ids(row).begin(), rows.ids(row).end()}; }

bool has_note(const SplitReport& report, const std::string& part) {
  return std::any_of(report.notes.begin(), report.notes.end(), [&](auto& n) { return n.find(part) != n.npos; });
}

PreparedSplit prepare(const std::vector<ordered_json>& values, const text::TextAssets& assets = t0_assets(),
                      const SftOptions& options = {}, const std::string& word = "training") {
  return prepare_sft(kFile, rows_of(values), assets, options, word);
}

const ordered_json kA = chat("q", "a"), kB = chat("q", std::string(17, 'b'));

TEST(PrepareChat, CostsOfTurns) {
  const auto split = prepare({chat("hi", "yo"), kA, kB});
  EXPECT_EQ(split.rows.length(0), 10 + 15);
  EXPECT_EQ(split.rows.trained_tokens(0), 3);
  EXPECT_EQ(split.rows.length(1), 9 + 14);
  EXPECT_EQ(split.rows.trained_tokens(1), 2);
  EXPECT_EQ(split.rows.length(2), 9 + 30);
  EXPECT_EQ(split.rows.trained_tokens(2), 18);
  EXPECT_TRUE(split.report.chat);
  EXPECT_EQ(split.report.column, "messages");
  EXPECT_EQ(split.report.rows_used, 3);
  EXPECT_EQ(split.report.max_id, test::kImEnd);
  EXPECT_TRUE(has_note(split.report, "`messages` is taken without being named"));
}

TEST(PrepareChat, TwoTokensOfSampleAAreItsLetterAndTheEnd) {
  const auto split = prepare({kA});
  const auto batch = collate(split.rows, single_rows(split.rows));
  EXPECT_EQ(batch.label, (Ids{'a', test::kImEnd}));
  EXPECT_EQ(batch.tokens[batch.label_row[0]], '\n');
  EXPECT_EQ(batch.tokens[batch.label_row[1]], 'a');
}

TEST(PrepareChat, SamplesAAndBInOneBatchOrTwo) {
  const auto split = prepare({kA, kB});
  EXPECT_EQ(collate(split.rows, single_rows(split.rows)).num_labels(), 20);
  EXPECT_EQ(split.rows.total_trained(), 20);
}

TEST(PrepareChat, BosIsTheTemplatesMatter) {
  const test::T0Options with_bos{.bos_post_processor = true, .added = {}};
  EXPECT_EQ(ids_of(prepare({kA}, t0_assets(test::kC0, with_bos)).rows, 0)[0], test::kImStart);
  const auto ids = ids_of(prepare({kA}, t0_assets(test::kC0b, with_bos)).rows, 0);
  EXPECT_EQ(ids[0], test::kBos);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), test::kBos), 1);
}

TEST(PrepareChat, AllTokensButTheFirst) {
  SftOptions options;
  options.response_only = false;
  const auto split = prepare({kA}, t0_assets(), options);
  EXPECT_EQ(split.rows.trained_tokens(0), 22);
  EXPECT_EQ(split.rows.length(0), 23);
}

TEST(PrepareChat, NoTemplate) {
  expect_user_error([] { prepare({kA}, t0_assets("")); }, {"/d/train.jsonl", "tokenizer has none", "--chat-template chatml"});
  SftOptions none;
  none.chat_template_choice = "none";
  expect_user_error([&] { prepare({kA}, t0_assets(""), none); }, {"--chat-template is `none`"});
}

TEST(PrepareChat, MovedSystemMessagesAreCounted) {
  ordered_json row = kA;
  row["messages"].insert(row["messages"].begin(), ordered_json{{"role", "system"}, {"content", "s"}});
  const auto split = prepare({row, kA, row}, t0_assets(test::kCG));
  EXPECT_EQ(split.report.system_messages_moved, 2);
  EXPECT_TRUE(has_note(split.report, "2 were put before the first user text"));
}

TEST(PrepareChat, DroppedTextIsNoted) {
  const auto split = prepare({kA, chat("q", "<think>x</think>a")},
                             t0_assets("{% for m in messages %}{{ m.content.split('</think>')[-1] }}</s>{% endfor %}"));
  EXPECT_TRUE(has_note(split.report, "drops text of 1 assistant turns (first in row 2)"));
  EXPECT_EQ(ids_of(split.rows, 1), ids_of(split.rows, 0));
  EXPECT_EQ(split.rows.trained_tokens(1), split.rows.trained_tokens(0));
}

const ordered_json kLongPrompt = chat(std::string(60, 'q'), "a");

TEST(Truncation, RowsWithoutATrainedTokenAreSkipped) {
  SftOptions options;
  options.max_length = 40;
  const auto split = prepare({kA, kLongPrompt}, t0_assets(), options);
  EXPECT_EQ(split.rows.size(), 1);
  EXPECT_EQ(split.rows.total_trained(), 2);
  EXPECT_EQ(split.report.rows_without_trained_tokens, (std::vector<int64_t>{2}));
  EXPECT_EQ(split.report.rows_truncated, 1);
  EXPECT_EQ(split.report.longest_prompt, 79);  // 4 + 4 + 60 for the user, 11 for the assistant's header
  EXPECT_EQ(split.report.longest_row, 82);
  EXPECT_TRUE(has_note(split.report, "1 row without a trained token is skipped: line 2"));
}

TEST(Truncation, NothingLeftToTrain) {
  SftOptions options;
  options.max_length = 40;
  expect_user_error([&] { prepare({kLongPrompt}, t0_assets(), options); }, {"cut at 40 tokens (--block-size)", "longest prompt has 79", "Raise --block-size"});
  const auto split = prepare({kLongPrompt}, t0_assets(), options, "validation");
  EXPECT_EQ(split.rows.size(), 0);
  EXPECT_TRUE(has_note(split.report, "no tokens"));
  expect_user_error([] { prepare({{{"messages", {{{"role", "user"}, {"content", "q"}}}}}}); }, {"no conversation has an assistant turn"});
}

TEST(Truncation, FiveRowsOfWhichOneIsCutWhole) {
  SftOptions options;
  options.max_length = 64;
  const auto split = prepare({kA, kB, kLongPrompt, kA, kA}, t0_assets(), options);
  EXPECT_EQ(split.rows.size(), 4);
  EXPECT_EQ(split.rows.source_row(2), 4);
  EXPECT_EQ(split.report.rows_without_trained_tokens, (std::vector<int64_t>{3}));
}

TEST(Truncation, KeepsTheStart) {
  SftOptions options;
  options.max_length = 4;
  const auto split = prepare({text("abcdef")}, t0_assets(), options);
  EXPECT_EQ(ids_of(split.rows, 0), (Ids{test::kBos, 'a', 'b', 'c'}));
}

TEST(Truncation, ExactFitIsNotTruncated) {
  SftOptions options;
  options.max_length = 23;
  const auto split = prepare({kA}, t0_assets(), options);
  EXPECT_EQ(split.report.rows_truncated, 0);
  EXPECT_EQ(split.rows.trained_tokens(0), 2);
}

TEST(PlainText, EndIsTrainedThoughItIsThePadToken) {
  auto assets = t0_assets();
  assets.bos.reset();
  assets.eos = assets.pad = text::SpecialToken{"</s>", test::kEos};
  for (const bool has_pad : {true, false}) {
    if (!has_pad) assets.pad.reset();
    const auto split = prepare({text("ab"), text("abcdef")}, assets);
    EXPECT_EQ(ids_of(split.rows, 0), (Ids{'a', 'b', test::kEos}));
    EXPECT_EQ(split.rows.trained_tokens(0), 2);
    EXPECT_EQ(split.rows.trained_tokens(1), 6);
    EXPECT_EQ(split.rows.trained(1).back(), 1);
  }
}

TEST(PlainText, OneStartAndOneEnd) {
  for (const bool post : {false, true}) {
    const auto assets = t0_assets("", {.bos_post_processor = post, .added = {}});
    const auto split = prepare({text("ab"), text("<s>ab"), text("ab<|im_end|>")}, assets);
    for (int64_t row = 0; row < 3; ++row)
      EXPECT_EQ(ids_of(split.rows, row), (Ids{test::kBos, 'a', 'b', test::kImEnd})) << row;
    EXPECT_EQ(split.rows.trained_tokens(0), 3);
  }
}

TEST(PlainText, StartThatOnlyThePostProcessorKnows) {
  auto assets = t0_assets("", {.bos_post_processor = true, .added = {}});
  assets.bos.reset();
  EXPECT_EQ(ids_of(prepare({text("ab")}, assets).rows, 0), (Ids{test::kBos, 'a', 'b', test::kImEnd}));
}

TEST(PlainText, NoEndWhenNotAskedFor) {
  SftOptions options;
  options.add_eos_token = false;
  EXPECT_EQ(ids_of(prepare({text("ab")}, t0_assets(), options).rows, 0), (Ids{test::kBos, 'a', 'b'}));
}

TEST(PlainText, EmptyTexts) {
  auto assets = t0_assets();
  EXPECT_EQ(ids_of(prepare({text("")}, assets).rows, 0), (Ids{test::kBos, test::kImEnd}));
  assets.bos.reset();
  const auto split = prepare({text(""), text("a")}, assets);
  EXPECT_EQ(split.report.rows_without_trained_tokens, (std::vector<int64_t>{1}));
}

TEST(PlainText, TokenizerWithoutAnEnd) {
  auto assets = t0_assets();
  assets.eos.reset();
  const auto split = prepare({text("ab")}, assets);
  EXPECT_EQ(split.rows.length(0), 3);
  EXPECT_TRUE(has_note(split.report, "no eos token"));
}

TEST(PlainText, TemplateThatWasAskedForIsNotUsed) {
  SftOptions options;
  options.chat_template_choice = "chatml";
  const auto split = prepare({text("a"), text("b")}, t0_assets(), options);
  EXPECT_TRUE(has_note(split.report, "Could not parse text column as messages, skipping chat template (2 rows"));
}

TEST(PrepareSft, AllOrdersOfMixedRowsGiveTheSameRows) {
  const std::vector<std::string> lines = {R"({"instruction":"i","input":"","output":"x"})",
                                          R"({"instruction":"i","input":"n","output":"42"})",
                                          R"({"instruction":"i","output":"y"})",
                                          R"({"instruction":"i","input":null,"output":"z"})"};
  SftOptions options;
  options.text_column = "output";
  std::vector<int> order = {0, 1, 2, 3};
  std::vector<std::vector<Ids>> seen;
  do {
    std::vector<ordered_json> values;
    for (const int i : order) values.push_back(ordered_json::parse(lines[i]));
    const auto split = prepare(values, t0_assets(), options);
    std::vector<Ids> rows;
    for (int64_t row = 0; row < split.rows.size(); ++row) rows.push_back(ids_of(split.rows, row));
    EXPECT_EQ(rows[0][1], std::string("x4yz")[order[0]]);
    std::sort(rows.begin(), rows.end());
    seen.push_back(std::move(rows));
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(seen.size(), 24u);
  for (const auto& rows : seen) EXPECT_EQ(rows, seen[0]);
}

TEST(PrepareSft, EvenlySpacedSamples) {
  std::vector<ordered_json> values;
  for (char c = 'a'; c <= 'j'; ++c) values.push_back(text(std::string(1, c)));
  const auto letters = [&](int64_t limit) {
    SftOptions options;
    options.max_samples = limit;
    const auto split = prepare(values, t0_assets(), options);
    std::string result;
    for (int64_t row = 0; row < split.rows.size(); ++row) result += static_cast<char>(split.rows.ids(row)[1]);
    return result;
  };
  EXPECT_EQ(letters(3), "adg");
  EXPECT_EQ(letters(4), "aceg");
  EXPECT_EQ(letters(7), "abcdefg");
  EXPECT_EQ(letters(0), "abcdefghij");
  EXPECT_EQ(letters(50), "abcdefghij");
}

TEST(PrepareSft, HighestIdIsReported) {
  const auto assets = t0_assets("", {.bos_post_processor = false, .added = {"<x1>", "<x2>", "<x3>", "<x4>"}});
  SftOptions options;
  options.embedding_rows = 264;
  const auto split = prepare({text("a<x4>"), text("b")}, assets, options);
  EXPECT_EQ(split.report.max_id, 264);
  EXPECT_TRUE(has_note(split.report, "token ids go up to 264, but the embedding has 264 rows"));
  EXPECT_FALSE(has_note(prepare({text("a<x3>")}, assets, options).report, "embedding"));
}

TEST(PrepareSft, ManyRowsKeepTheirOrder) {
  std::vector<ordered_json> values;
  for (int i = 0; i < 2500; ++i) values.push_back(text(std::to_string(i)));
  const auto split = prepare(values);
  ASSERT_EQ(split.rows.size(), 2500);
  for (int64_t row = 0; row < 2500; ++row) {
    const auto ids = split.rows.ids(row);
    EXPECT_EQ(std::string(ids.begin() + 1, ids.end() - 1), std::to_string(row));
    EXPECT_EQ(split.rows.source_row(row), row + 1);
  }
}

TEST(PrepareSft, FiveRowsInWindowsOfFour) {
  const auto split = prepare({kA, kA, kA, kA, kA});
  for (const int64_t epoch : {0, 1}) {
    const EpochPlan plan(split.rows.size(), 42, epoch, {1, 4, 1}, true);
    std::vector<int64_t> labels;
    for (int64_t u = 0; u < plan.updates(); ++u) {
      labels.push_back(0);
      for (int64_t m = 0; m < plan.micro_batches(u); ++m)
        for (const int64_t row : plan.items(u, m, 0)) labels.back() += split.rows.trained_tokens(row);
    }
    EXPECT_EQ(labels, (std::vector<int64_t>{8, 2}));
  }
}

}  // namespace
}  // namespace aitraining::data
