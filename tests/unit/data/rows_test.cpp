#include <gtest/gtest.h>

#include "aitraining/data/sft.h"
#include "support/expect_error.h"
#include "support/weight_files.h"

namespace aitraining::data {
namespace {

using nlohmann::ordered_json;
using test::expect_user_error;

std::vector<Row> read(const std::string& name, std::string_view content) {
  const test::TempDir folder;
  folder.write(name, content);
  return read_rows(find_split(folder.path() / name, "train"));
}

std::vector<ordered_json> values(const std::string& name, std::string_view content) {
  std::vector<ordered_json> result;
  for (auto& row : read(name, content)) result.push_back(row.values);
  return result;
}

TEST(Csv, QuotesNewlinesAndByteOrderMark) {
  const auto rows = values("train.csv", "\xEF\xBB\xBFtext,label\r\n\"a, \"\"b\"\"\",1\r\n\"two\nlines\",\r\n  x \",y\"\"\r\n");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0], (ordered_json{{"text", "a, \"b\""}, {"label", "1"}}));
  EXPECT_EQ(rows[1], (ordered_json{{"text", "two\nlines"}, {"label", ""}}));
  EXPECT_EQ(rows[2], (ordered_json{{"text", "  x \""}, {"label", "y\"\""}}));
}

TEST(Csv, EveryValueStaysTheTextItIs) {
  const auto rows = values("train.csv", "text\n007\n1.50\nnull\nNA\n2024-01-02\nTrue\n1e5\n\"\"\n");
  std::vector<std::string> texts;
  for (const auto& row : rows) texts.push_back(row["text"]);
  EXPECT_EQ(texts, (std::vector<std::string>{"007", "1.50", "null", "NA", "2024-01-02", "True", "1e5", ""}));
}

TEST(Csv, HeaderKeepsBlanksAndEmptyLinesAreSkipped) {
  const auto rows = read("train.csv", "\n text,b\n\n1,2\r\r3,4");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].values, (ordered_json{{" text", "3"}, {"b", "4"}}));
  EXPECT_EQ(rows[1].number, 2);
}

TEST(Csv, UnnamedIndexColumn) {
  EXPECT_EQ(values("train.csv", ",text\n0,a\n")[0], (ordered_json{{"Unnamed: 0", "0"}, {"text", "a"}}));
}

TEST(Csv, BrokenFilesNameTheLine) {
  expect_user_error([] { read("train.csv", "text,b\n\"x\ny\",1\n1,2,3\n"); }, {"train.csv:4:", "3 fields", "header has 2"});
  expect_user_error([] { read("train.csv", "text,b\nonly\n"); }, {"train.csv:2:", "1 field,"});
  expect_user_error([] { read("train.csv", "text\na\n\"open\nmore\n"); }, {"train.csv:3:", "never closed"});
  expect_user_error([] { read("train.csv", "text\n\"a\"b\n"); }, {"train.csv:2:", "closing quote"});
  expect_user_error([] { read("train.csv", "text\nok\ncaf\xE9\n"); }, {"train.csv:3:", "0xe9", "UTF-8"});
  expect_user_error([] { read("train.csv", "\xFF\xFEt\0"); }, {"train.csv:1:", "0xff"});
  expect_user_error([] { read("train.csv", "text,text\na,b\n"); }, {"`text`", "twice"});
}

TEST(Tsv, TabsSeparate) {
  EXPECT_EQ(values("train.tsv", "text\tb\na,b\t\"c\td\"\n")[0], (ordered_json{{"text", "a,b"}, {"b", "c\td"}}));
}

TEST(JsonLines, LineNumbersAndBlankLines) {
  const auto rows = read("train.jsonl", "{\"text\":\"a\"}\n\n  \r\n{\"text\":\"b\"}\r\n{\"text\":\"c\"}");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].number, 1);
  EXPECT_EQ(rows[1].number, 4);
  EXPECT_EQ(rows[2].number, 5);
  EXPECT_EQ(rows[2].values["text"], "c");
}

TEST(JsonLines, NumbersOfARowKeepTheirWrittenForm) {
  const auto row = values("train.jsonl", R"({"a":42,"b":1.50,"c":-7,"d":1E-3,"e":123456789012345678901234567890,)"
                                         R"("f":true,"g":null,"h":[1.50],"i":{"j":2}})")[0];
  EXPECT_EQ(row, ordered_json::parse(R"({"a":"42","b":"1.50","c":"-7","d":"1E-3",)"
                                     R"("e":"123456789012345678901234567890","f":true,"g":null,"h":[1.5],"i":{"j":2}})"));
}

TEST(JsonLines, BrokenLinesNameLineAndColumn) {
  expect_user_error([] { read("train.jsonl", "{\"text\":\"a\"}\n{\"text\":nul}\n"); }, {"train.jsonl:2:12:", "not valid JSON"});
  expect_user_error([] { read("train.jsonl", "{\"text\":\"a\"\n"); }, {"train.jsonl:1:"});
  expect_user_error([] { read("train.jsonl", "{\"text\":\"\xE9\"}\n"); }, {"train.jsonl:1:", "UTF-8"});
  expect_user_error([] { read("train.jsonl", "{\"a\":1}\n[1]\n"); }, {"train.jsonl:2:", "one JSON object", "an array"});
  expect_user_error([] { read("train.jsonl", "{\"a\":" + std::string(100000, '[')); }, {"train.jsonl:1:", "256 levels"});
  expect_user_error([] { read("train.jsonl", "{\"a\":1e400}"); }, {"train.jsonl:1:", "not valid JSON: number overflow"});
}

TEST(JsonArray, RowsOfAnArray) {
  const auto rows = read("train.json", "\xEF\xBB\xBF[\n {\"text\": \"a\"},\n {\"text\": 42}\n]\n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].number, 2);
  EXPECT_EQ(rows[1].values["text"], "42");
}

TEST(JsonArray, OtherShapesSayWhatWasExpected) {
  expect_user_error([] { read("train.json", R"({"data":[{"text":"a"}]})"); },
                    {"expected a JSON array of objects", "the key `data`"});
  expect_user_error([] { read("train.json", R"({"text":"a","label":1})"); },
                    {"expected a JSON array of objects", "`text`, `label`"});
  expect_user_error([] { read("train.json", R"([{"text":"a"}, 3])"); }, {"row 2", "array of objects", "number"});
  expect_user_error([] { read("train.json", "[\n{\"text\":\"a\"},\n{\"text\" 1}\n]"); }, {"train.json:3:9:"});
}

TEST(ReadRows, EmptySplitIsAnError) {
  for (const char* content : {"", "\n", "text\n"})
    expect_user_error([&] { read("train.csv", content); }, {"train.csv", "empty"});
  expect_user_error([] { read("train.jsonl", "\n \n"); }, {"train.jsonl", "empty"});
  expect_user_error([] { read("train.json", "[]"); }, {"train.json", "empty"});
}

TEST(FindSplit, CsvComesFirst) {
  const test::TempDir folder;
  for (const char* name : {"train.tsv", "train.json", "train.jsonl", "train.csv"}) folder.write(name, "x");
  EXPECT_EQ(find_split(folder.path(), "train").format, "csv");
  std::filesystem::remove(folder.path() / "train.csv");
  EXPECT_EQ(find_split(folder.path(), "train").path.filename(), "train.jsonl");
}

TEST(FindSplit, MissingSplitNamesWhatWasLookedForAndWhatIsThere) {
  const test::TempDir folder;
  folder.write("train.jsonl", "x");
  folder.write("validation.csv", "x");
  const std::string base = folder.path().string();
  expect_user_error([&] { find_split(folder.path(), "valid"); },
                    {"No `valid` data: looked for " + base + "/valid.csv, " + base + "/valid.jsonl", "/valid.tsv",
                     "splits that are there: train, validation"});
  expect_user_error([&] { find_split(folder.path(), "trian"); }, {"did you mean `train`?"});
  expect_user_error([&] { find_split(folder.path() / "no", "train"); }, {"No training data", base + "/no does not exist"});
  folder.write("test.parquet", "x");
  expect_user_error([&] { find_split(folder.path(), "test"); }, {"test.parquet is there", "not read"});
}

TEST(FindSplit, RelativePathsAreNamedAbsolute) {
  expect_user_error([] { find_split("no-such-folder", "train"); },
                    {std::filesystem::current_path().string() + "/no-such-folder/train.csv"});
}

TEST(FindSplit, AFileIsItsOwnSplitAndNeverAnother) {
  const test::TempDir folder;
  const auto path = folder.write("mine.jsonl", "x");
  EXPECT_EQ(find_split(path, "train").path, path);
  EXPECT_EQ(find_split(path, "mine").path, path);
  expect_user_error([&] { find_split(path, "validation"); }, {"No `validation` data", "splits that are there: mine"});
  folder.write("validation.jsonl", "x");
  EXPECT_EQ(find_split(path, "validation").path.filename(), "validation.jsonl");
  expect_user_error([&] { find_split(folder.write("a.parquet", "x"), "train"); }, {".parquet", ".jsonl"});
}

}  // namespace
}  // namespace aitraining::data
