#include <gtest/gtest.h>

#include "aitraining/data/sft.h"
#include "support/expect_error.h"

namespace aitraining::data {
namespace {

using nlohmann::ordered_json;
using test::expect_user_error;

const SplitFile kFile{"/data/train.jsonl", "jsonl"};

std::vector<Row> rows_of(const std::vector<std::string>& lines) {
  std::vector<Row> rows;
  for (const auto& line : lines) rows.push_back({static_cast<int64_t>(rows.size()) + 1, ordered_json::parse(line)});
  return rows;
}

ColumnChoice check(const std::vector<std::string>& lines, const std::string& column = "text", bool given = false) {
  SftOptions options;
  options.text_column = column;
  options.text_column_given = given;
  return check_columns(kFile, rows_of(lines), options, "training");
}

const std::string kChat = R"([{"role":"user","content":"q"},{"role":"assistant","content":"a"}])";

TEST(CheckColumns, NearMatches) {
  expect_user_error([] { check({R"({"Text":"a","label":"1"})"}); },
                    {"SFT trainer requires training data to have columns: ['text']", "Columns ['text'] not found in dataset.",
                     "Available columns in your data: ['Text', 'label']", "/data/train.jsonl", "did you mean `Text`?"});
  expect_user_error([] { check({R"({" text":"a"})"}, "text", true); }, {"did you mean ` text`?"});
  expect_user_error([] { check({R"({"txet":"a","b":"c"})"}); }, {"did you mean `txet`?"});
}

TEST(CheckColumns, ErrorIsOneLine) {
  try {
    check({R"({"Text":"a"})"});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
  }
}

TEST(CheckColumns, HintsAtTheChatColumn) {
  expect_user_error([] { check({R"({"messages":)" + kChat + "}"}, "text", true); },
                    {"Hint: Your dataset has a 'messages' column. Use --text-column messages for chat format data."});
  expect_user_error([] { check({R"({"conversations":)" + kChat + "}"}, "messages", true); },
                    {"columns: ['messages']", "Use --text-column conversations"});
}

TEST(CheckColumns, MessagesAreTakenWithoutBeingNamed) {
  const auto choice = check({R"({"messages":)" + kChat + "}"});
  EXPECT_EQ(choice.column, "messages");
  EXPECT_TRUE(choice.chat);
  EXPECT_EQ(check({R"({"text":"a","messages":)" + kChat + "}"}).column, "text");
  expect_user_error([] { check({R"({"messages":"plain"})"}); }, {"not found in dataset"});
}

TEST(CheckColumns, OtherColumnsOfOtherTrainersAreNotNeeded) {
  EXPECT_FALSE(check({R"({"text":"a"})"}).chat);
}

TEST(CheckColumns, JsonTextIsAMessageList) {
  const ordered_json row = {{"text", kChat}};
  EXPECT_TRUE(check({row.dump()}).chat);
  EXPECT_FALSE(check({R"({"text":"[1, 2] is a list"})"}).chat);
  EXPECT_FALSE(check({R"({"text":"[{ is how it begins"})"}).chat);
  expect_user_error([] { check({R"({"text":"[{'role': 'user', 'content': None}]"})"}); },
                    {"/data/train.jsonl:1", "not JSON", "double quotes"});
}

TEST(CheckColumns, ReservedNames) {
  expect_user_error([] { check({R"({"text":"a","autotrain_prompt":"b"})"}); },
                    {"autotrain_prompt is a reserved column name", "/data/train.jsonl"});
}

TEST(CheckColumns, RowsOfTwoKinds) {
  std::vector<std::string> lines(16, R"({"text":)" + kChat + "}");
  lines.push_back(R"({"text":"words"})");
  expect_user_error([&] { check(lines); }, {"/data/train.jsonl:17", "holds text here", "a message list in row 1"});
}

TEST(CheckColumns, RowsWithoutAValue) {
  expect_user_error([] { check({R"({"text":"a"})", R"({"text":null})"}); }, {"/data/train.jsonl:2", "`text` is null"});
  expect_user_error([] { check({R"({"text":"a"})", R"({"b":"a"})"}); }, {"/data/train.jsonl:2", "`text` is missing"});
  expect_user_error([] { check({R"({"text":{"a":1}})"}); }, {"/data/train.jsonl:1", "an object"});
  expect_user_error([] { check({R"({"text":["a"]})"}); }, {"/data/train.jsonl:1", "role", "content"});
}

}  // namespace
}  // namespace aitraining::data
