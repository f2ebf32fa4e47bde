#include "pre_tokenizers.h"

#include <map>

#include "aitraining/core/error.h"

namespace aitraining::text {

using nlohmann::ordered_json;

namespace {

constexpr const char* kLlama3Split =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2Split =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

ordered_json byte_level(bool add_prefix_space, bool trim_offsets, bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", trim_offsets},
          {"use_regex", use_regex}};
}

ordered_json sequence(ordered_json first, ordered_json second) {
  return {{"type", "Sequence"},
          {"pretokenizers", ordered_json::array({std::move(first), std::move(second)})}};
}

ordered_json split(const char* pattern) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", pattern}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

PreTokenizer gpt2() {
  PreTokenizer parts;
  parts.pre_tokenizer = byte_level(false, true, true);
  parts.post_processor = byte_level(true, false, true);
  parts.decoder = byte_level(true, true, true);
  return parts;
}

PreTokenizer smollm() {
  auto parts = gpt2();
  parts.pre_tokenizer =
      sequence({{"type", "Digits"}, {"individual_digits", true}}, byte_level(false, true, true));
  parts.post_processor = nullptr;
  return parts;
}

PreTokenizer llama3() {
  auto parts = gpt2();
  parts.pre_tokenizer = sequence(split(kLlama3Split), byte_level(false, true, false));
  parts.ignore_merges = true;
  parts.adds_bos = true;
  return parts;
}

PreTokenizer qwen2() {
  PreTokenizer parts;
  parts.normalizer = {{"type", "NFC"}};
  parts.pre_tokenizer = sequence(split(kQwen2Split), byte_level(false, false, false));
  parts.post_processor = byte_level(false, false, false);
  parts.decoder = byte_level(false, false, false);
  return parts;
}

}  // namespace

PreTokenizer pre_tokenizer_of(const std::string& name, const std::string& origin) {
  static const std::map<std::string, PreTokenizer (*)()> known = {
      {"default", gpt2},  {"gpt-2", gpt2},      {"smollm", smollm}, {"llama-bpe", llama3},
      {"llama3", llama3}, {"llama-v3", llama3}, {"qwen2", qwen2},
  };
  const auto found = known.find(name);
  if (found != known.end()) return found->second();
  throw UserError(
      "[text] {}: tokenizer.ggml.pre is \"{}\"; smollm, llama-bpe, qwen2 and default (gpt-2) are "
      "supported. "
      "Give the model as a Hugging Face folder with tokenizer.json instead",
      origin, name);
}

}  // namespace aitraining::text
