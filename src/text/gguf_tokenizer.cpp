// GGUF keeps a tokenizer as vocabulary, merges and names; here it becomes the files of a Hugging Face folder.
#include <set>

#include "aitraining/core/error.h"
#include "build_assets.h"
#include "byte_alphabet.h"
#include "pre_tokenizers.h"

namespace aitraining::text {

using format::GgufFile;
using nlohmann::ordered_json;

namespace {

enum TokenType { kNormal = 1, kControl = 3, kUserDefined = 4, kUnused = 5 };

constexpr const char* kTokens = "tokenizer.ggml.tokens";

struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<int64_t> types;

  bool is_added(size_t id) const { return types[id] == kControl || types[id] == kUserDefined; }
};

Vocabulary read_vocabulary(const GgufFile& file, const std::string& origin) {
  Vocabulary vocabulary{.tokens = file.texts(kTokens), .types = {}};
  if (file.has("tokenizer.ggml.token_type")) vocabulary.types = file.integers("tokenizer.ggml.token_type");
  if (vocabulary.types.empty()) vocabulary.types.assign(vocabulary.tokens.size(), kNormal);
  if (vocabulary.types.size() != vocabulary.tokens.size()) {
    throw UserError("[text] {}: tokenizer.ggml.token_type has {} entries, tokenizer.ggml.tokens {}", origin,
                    vocabulary.types.size(), vocabulary.tokens.size());
  }
  return vocabulary;
}

// Unused entries only fill up the embedding; the tokenizers these files come from do not list them.
ordered_json vocab_json(const Vocabulary& vocabulary, const std::string& origin) {
  ordered_json::object_t entries;
  std::set<std::string> seen;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (vocabulary.types[id] == kUnused) continue;
    const auto& token = vocabulary.tokens[id];
    const bool as_is = vocabulary.is_added(id) || is_byte_spelled(token);
    auto spelled = as_is ? token : byte_spelled(token);
    if (!seen.insert(spelled).second) {
      throw UserError("[text] {}: {} holds \"{}\" twice (the second time as id {})", origin, kTokens, token, id);
    }
    // Straight to the end: ordered_json's own insertion searches the whole object each time.
    entries.Container::emplace_back(std::move(spelled), id);
  }
  return entries;
}

ordered_json added_json(const Vocabulary& vocabulary) {
  auto added = ordered_json::array();
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (!vocabulary.is_added(id)) continue;
    added.push_back({{"id", id},
                     {"content", vocabulary.tokens[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", vocabulary.types[id] == kControl}});
  }
  return added;
}

ordered_json merges_json(const GgufFile& file, const std::string& origin) {
  auto merges = ordered_json::array();
  for (const auto& merge : file.texts("tokenizer.ggml.merges")) {
    const size_t blank = merge.find(' ');
    if (blank == std::string::npos || blank == 0 || blank + 1 == merge.size() ||
        merge.find(' ', blank + 1) != std::string::npos) {
      throw UserError("[text] {}: tokenizer.ggml.merges holds \"{}\", which is not two pieces", origin, merge);
    }
    merges.push_back({merge.substr(0, blank), merge.substr(blank + 1)});
  }
  return merges;
}

struct Named { std::string bos, eos, pad, unk; };

std::string token_at(const GgufFile& file, const Vocabulary& vocabulary, const std::string& key,
                     const std::string& origin) {
  if (!file.has(key)) return {};
  const int64_t id = file.integer(key);
  if (id < 0 || id >= static_cast<int64_t>(vocabulary.tokens.size())) {
    throw UserError("[text] {}: {} is {}, but there are {} tokens", origin, key, id, vocabulary.tokens.size());
  }
  return vocabulary.tokens[id];
}

ordered_json special_piece(const std::string& token) { return {{"SpecialToken", {{"id", token}, {"type_id", 0}}}}; }

// Adds bos and eos round a text, after what the family does anyway.
ordered_json post_processor(ordered_json base, const std::vector<std::pair<std::string, int64_t>>& before,
                            const std::vector<std::pair<std::string, int64_t>>& after) {
  if (before.empty() && after.empty()) return base;
  auto single = ordered_json::array(), pair = ordered_json::array();
  ordered_json tokens = ordered_json::object();
  for (int part = 0; part < 2; ++part) {
    for (const auto& [token, id] : before) pair.push_back(special_piece(token));
    pair.push_back({{"Sequence", {{"id", part == 0 ? "A" : "B"}, {"type_id", part}}}});
    for (const auto& [token, id] : after) pair.push_back(special_piece(token));
    if (part == 0) single = pair;
  }
  for (const auto* list : {&before, &after}) {
    for (const auto& [token, id] : *list) {
      tokens[token] = {{"id", token}, {"ids", ordered_json::array({id})}, {"tokens", ordered_json::array({token})}};
    }
  }
  ordered_json around = {
      {"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", tokens}};
  if (base.is_null()) return around;
  return {{"type", "Sequence"}, {"processors", ordered_json::array({std::move(base), std::move(around)})}};
}

struct Ends { bool bos = false, eos = false; };

ordered_json tokenizer_json(const GgufFile& file, const Vocabulary& vocabulary, PreTokenizer parts,
                            const Named& named, Ends ends, const std::string& origin) {
  std::vector<std::pair<std::string, int64_t>> before, after;
  if (ends.bos) before.emplace_back(named.bos, file.integer("tokenizer.ggml.bos_token_id"));
  if (ends.eos) after.emplace_back(named.eos, file.integer("tokenizer.ggml.eos_token_id"));
  ordered_json model = {{"type", "BPE"},
                        {"dropout", nullptr},
                        {"unk_token", nullptr},
                        {"continuing_subword_prefix", nullptr},
                        {"end_of_word_suffix", nullptr},
                        {"fuse_unk", false},
                        {"byte_fallback", false},
                        {"ignore_merges", parts.ignore_merges},
                        {"vocab", vocab_json(vocabulary, origin)},
                        {"merges", merges_json(file, origin)}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added_json(vocabulary)},
          {"normalizer", std::move(parts.normalizer)},
          {"pre_tokenizer", std::move(parts.pre_tokenizer)},
          {"post_processor", post_processor(std::move(parts.post_processor), before, after)},
          {"decoder", std::move(parts.decoder)},
          {"model", std::move(model)}};
}

ordered_json named_json(const Named& named) {
  auto values = ordered_json::object();
  const auto put = [&](const char* key, const std::string& token) {
    if (!token.empty()) values[key] = token;
  };
  put("bos_token", named.bos);
  put("eos_token", named.eos);
  put("unk_token", named.unk);
  put("pad_token", named.pad);
  return values;
}

ordered_json config_json(const GgufFile& file, const Named& named, Ends ends) {
  ordered_json config = {{"add_bos_token", ends.bos},
                         {"add_eos_token", ends.eos},
                         {"add_prefix_space", false},
                         {"clean_up_tokenization_spaces", false}};
  config.update(named_json(named));
  const std::string architecture = file.has("general.architecture") ? file.text("general.architecture") : "";
  const std::string length_key = architecture + ".context_length";
  if (file.has(length_key)) config["model_max_length"] = file.integer(length_key);
  config["tokenizer_class"] = "PreTrainedTokenizerFast";
  return config;
}

void require_byte_level(const GgufFile& file, const std::string& origin) {
  if (!file.has("tokenizer.ggml.model")) {
    throw UserError("[text] {} holds no tokenizer (no key tokenizer.ggml.model)", origin);
  }
  const std::string model = file.text("tokenizer.ggml.model");
  if (model == "gpt2") return;
  throw UserError(
      "[text] {}: its tokenizer is of type \"{}\"; of GGUF files, byte-level BPE (type \"gpt2\") is supported. Give "
      "the model as a Hugging Face folder with tokenizer.json instead",
      origin, model);
}

std::string dump(const ordered_json& value, int indent, const std::string& origin) {
  try {
    return value.dump(indent);
  } catch (const ordered_json::exception& error) {
    throw UserError("[text] {}: its tokenizer holds text that is not valid UTF-8: {}", origin, error.what());
  }
}

}  // namespace

TextAssets text_assets_from_gguf(const GgufFile& file) {
  const std::string origin = file.describe();
  require_byte_level(file, origin);
  const auto vocabulary = read_vocabulary(file, origin);
  auto parts =
      pre_tokenizer_of(file.has("tokenizer.ggml.pre") ? file.text("tokenizer.ggml.pre") : "default", origin);
  const auto named_by = [&](const char* name) {
    return token_at(file, vocabulary, fmt::format("tokenizer.ggml.{}_token_id", name), origin);
  };
  const Named named{named_by("bos"), named_by("eos"), named_by("padding"), named_by("unknown")};
  const Ends ends{
      .bos = !named.bos.empty() && file.boolean("tokenizer.ggml.add_bos_token", parts.adds_bos),
      .eos = !named.eos.empty() && file.boolean("tokenizer.ggml.add_eos_token", false)};
  Files files;
  files["tokenizer.json"] =
      dump(tokenizer_json(file, vocabulary, std::move(parts), named, ends, origin), -1, origin);
  files["tokenizer_config.json"] = dump(config_json(file, named, ends), 2, origin) + "\n";
  files["special_tokens_map.json"] = dump(named_json(named), 2, origin) + "\n";
  if (file.has("tokenizer.chat_template")) files["chat_template.jinja"] = file.text("tokenizer.chat_template");
  return build_assets(std::move(files), origin);
}

}  // namespace aitraining::text
