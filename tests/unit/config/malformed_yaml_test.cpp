// Files damaged in a fixed, repeatable way: never a crash, always a line.
#include <random>
#include <regex>

#include "config_test_support.h"

namespace aitraining::config {
namespace {

using Malformed = ConfigTest;

constexpr const char* kWhole =
    "task: llm-sft\nbackend: local\nbase_model: ./model\nproject_name: demo\n"
    "data:\n  path: ./data\n  train_split: train\n  valid_split: null\n  chat_template: tokenizer\n"
    "  column_mapping:\n    text_column: text\nlog: none\nhub:\n  push_to_hub: false\n"
    "params:\n  epochs: 3\n  lr: 2e-5\n  batch_size: 2\n  peft: true\n"
    "  target_modules: [q_proj, v_proj]\n  mixed_precision: bf16\n";

// What makes any YAML file wrong, wherever it is put on a line of its own.
const std::vector<std::string> kBadLines{"\tlr: 1",
                                         "  - a\n b: c",
                                         "key: [1, 2",
                                         "key: {a: 1",
                                         "]",
                                         "}",
                                         "? [a, b]\n: c",
                                         "key: \"open",
                                         "key: 'open",
                                         "key: *nowhere",
                                         "%YAML 9.9.9",
                                         "---\n---",
                                         "key: &",
                                         "@at: 1",
                                         "`tick`: 1",
                                         "<<: {a: 1}",
                                         "!!binary x: y: z",
                                         "key: value: value",
                                         std::string("key: a\0b", 8),
                                         "key: \x04",
                                         "key: \xC3\x28",
                                         "\xED\xA0\x80: 1",
                                         "unknown_key_of_nobody: 1",
                                         "lr: {a: 1}",
                                         "- item",
                                         "key: !<!a b",
                                         "...\nkey: 1",
                                         "  ? a\n  ? b",
                                         "\x7F",
                                         "task: again"};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string with_bad_line(std::mt19937& random) {
  std::vector<std::string> lines = lines_of(kWhole);
  const auto at = static_cast<long>(random() % (lines.size() + 1));
  lines.insert(lines.begin() + at, kBadLines[random() % kBadLines.size()]);
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string with_damaged_bytes(std::mt19937& random) {
  std::string text = kWhole;
  constexpr std::string_view kPieces[] = {"[",  "]",  "{", "}", "\"", "'", ":", "- ", "\t", "&a ",
                                          "*a", "\n", "!", "#", "|",  ">", "%", ",",  "?",  "\xFF"};
  for (int i = 0; i < 6; ++i) {
    const size_t at = random() % text.size();
    if (random() % 2)
      text.insert(at, kPieces[random() % std::size(kPieces)]);
    else
      text.erase(at, 1 + random() % 3);
  }
  return text;
}

std::string cut(std::mt19937& random) {
  return std::string(kWhole).substr(0, random() % 140) + "\n  x";
}

std::string deep(std::mt19937& random) {
  constexpr std::string_view kOpen[] = {"[", "{a: ", "- ", "? ", "!t "};
  const std::string_view open = kOpen[random() % std::size(kOpen)];
  std::string text = std::string(kWhole) + "  lr2: ";
  for (unsigned i = 0; i < 200 + random() % 20000; ++i) text += open;
  return text;
}

std::string noise(std::mt19937& random) {
  std::string text;
  for (unsigned i = 0; i < 1 + random() % 400; ++i) text += static_cast<char>(random() % 256);
  return text;
}

std::string malformed(unsigned number) {
  std::mt19937 random(number);
  switch (number % 8) {
    case 0:
    case 1:
    case 2:
      return with_bad_line(random);
    case 3:
    case 4:
      return with_damaged_bytes(random);
    case 5:
      return cut(random);
    case 6:
      return noise(random);
    default:
      return deep(random);
  }
}

TEST_F(Malformed, TwoHundredFilesAreRefusedWithALine) {
  EXPECT_EQ(refusal({"--config", write(kWhole)}), "accepted");
  const std::regex place("bad\\.yaml:[1-9][0-9]*");
  int refused = 0;
  // Some of the damaged ones are still right, so there are more than two hundred to try.
  for (unsigned number = 0; number < 230; ++number) {
    const std::string text = malformed(number), path = write(text, "bad.yaml");
    const std::string message = refusal({"--config", path});
    if (message == "accepted") continue;
    ++refused;
    EXPECT_TRUE(std::regex_search(message, place)) << number << ": " << message << "\n" << text;
    EXPECT_LT(message.size(), 20000u) << number;
  }
  EXPECT_GE(refused, 200);
}

TEST_F(Malformed, PlacesAreRight) {
  EXPECT_HAS(refusal({"--config", write("task: llm\nbackend: local\nkey: \x04 x\n")}),
             "run.yaml:3:6: not readable as YAML: the control character 0x04");
  EXPECT_HAS(refusal({"--config", write("task: llm\nkey: \xC3(\n")}),
             "run.yaml:2:6: not readable as YAML: bytes that are not UTF-8");
  EXPECT_HAS(refusal({"--config", write(std::string("\xFF\xFEt\0a\0", 6))}), "run.yaml:1:1: ");
  EXPECT_HAS(refusal({"--config", write("a: 1\n---\nb: 2\n")}), "run.yaml:3:1: holds 2 documents");
  EXPECT_HAS(refusal({"--config", write(", task: llm\nbackend: local\n")}),
             "run.yaml:1:1: not readable as YAML: something here belongs to no key");
  EXPECT_HAS(refusal({"--config", write("task: llm\n, backend: local\n")}), "run.yaml:2:");
  EXPECT_HAS(refusal({"--config", write("# nothing\n")}),
             "run.yaml:1:1: the configuration file is");
  EXPECT_HAS(refusal({"--config", write("log: none\n")}), "run.yaml:1:1: Task is required");
}

}  // namespace
}  // namespace aitraining::config
