#pragma once
// Tokenizer T0 (one byte = one token) and the templates that go with it. Ids 0..255 are the bytes, then 256 <s>, 257 </s>,
// 258 <pad>, 259 <|im_start|>, 260 <|im_end|>; there are no merges, so token counts can be done by hand. Under C0 a turn
// costs len(role) + len(content) + 4 tokens, and an assistant turn has len(content) + 1 trained ones.
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "aitraining/text/assets.h"

namespace aitraining::test {

constexpr int32_t kBos = 256, kEos = 257, kPad = 258, kImStart = 259, kImEnd = 260;
inline const std::vector<std::string> kSpecialTokens = {"<s>", "</s>", "<pad>", "<|im_start|>", "<|im_end|>"};

inline const std::string kPrompt = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
inline const std::string kC0 =
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}" + kPrompt;
inline const std::string kC0b = "{{ bos_token }}" + kC0;
inline const std::string kC0g =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' }}"
    "{% if message['role'] == 'assistant' %}{% generation %}{{ message['content'] + '<|im_end|>' }}{% endgeneration %}"
    "{% else %}{{ message['content'] + '<|im_end|>' }}{% endif %}{{ '\\n' }}{% endfor %}" + kPrompt;
inline const std::string kCG =
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for message in messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% set role = 'model' if message['role'] == 'assistant' else message['role'] %}"
    "{{ '<|im_start|>' + role + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>model\\n' }}{% endif %}";

// The character by which byte-level BPE writes a byte, in UTF-8.
inline std::vector<std::string> byte_characters() {
  std::vector<std::string> table;
  const auto utf8 = [](unsigned c) {
    if (c < 0x80) return std::string(1, static_cast<char>(c));
    return std::string{static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
  };
  unsigned extra = 256;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
    table.push_back(utf8(printable ? byte : extra++));
  }
  return table;
}

struct T0Options {
  bool bos_post_processor = false;  // prepends 256
  std::vector<std::string> added;   // more special tokens, from id 261 on
};

inline nlohmann::ordered_json t0_json(const T0Options& options = {}) {
  using nlohmann::ordered_json;
  ordered_json tokens = ordered_json::array(), vocab = ordered_json::object(), post = nullptr;
  std::vector<std::string> names = kSpecialTokens;
  names.insert(names.end(), options.added.begin(), options.added.end());
  for (const auto& name : names)
    tokens.push_back({{"id", 256 + tokens.size()}, {"content", name}, {"single_word", false}, {"lstrip", false},
                      {"rstrip", false}, {"normalized", false}, {"special", true}});
  for (const auto& character : byte_characters()) vocab[character] = vocab.size();
  const ordered_json level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  if (options.bos_post_processor) {
    const ordered_json bos = {{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}};
    const ordered_json a = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}, b = {{"Sequence", {{"id", "B"}, {"type_id", 1}}}};
    post = {{"type", "TemplateProcessing"}, {"single", ordered_json::array({bos, a})},
            {"pair", ordered_json::array({bos, a, b})}};
    post["special_tokens"]["<s>"] = {{"id", "<s>"}, {"ids", {kBos}}, {"tokens", {"<s>"}}};
  }
  const ordered_json model = {{"type", "BPE"}, {"dropout", nullptr}, {"unk_token", nullptr},
                              {"continuing_subword_prefix", nullptr}, {"end_of_word_suffix", nullptr},
                              {"fuse_unk", false}, {"byte_fallback", false}, {"ignore_merges", false},
                              {"vocab", vocab}, {"merges", ordered_json::array()}};
  return {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}, {"added_tokens", tokens},
          {"normalizer", nullptr}, {"pre_tokenizer", level}, {"post_processor", post}, {"decoder", level},
          {"model", model}};
}

inline text::ChatTemplate template_of(const std::string& source) {
  return {source, {"<s>", "<|im_end|>", "<pad>", ""}, "the test's template"};
}

// T0 with bos <s>, eos <|im_end|>, pad <pad>, and the given template (empty: none).
inline text::TextAssets t0_assets(const std::string& source = kC0, const T0Options& options = {}) {
  text::TextAssets assets{text::Tokenizer::from_json(t0_json(options).dump(), "T0"), {}, {}, {}, {}, {}, {}, {}};
  if (!source.empty()) assets.chat_template = template_of(source);
  assets.bos = text::SpecialToken{"<s>", kBos};
  assets.eos = text::SpecialToken{"<|im_end|>", kImEnd};
  assets.pad = text::SpecialToken{"<pad>", kPad};
  return assets;
}

}  // namespace aitraining::test
