// GGUF keeps a tokenizer as vocabulary, merges and names; here it becomes the files of a Hugging
// Face folder.
#include "aitraining/core/error.h"
#include "build_assets.h"
#include "gguf_vocabulary.h"
#include "pre_tokenizers.h"

namespace aitraining::text {

using format::GgufFile;
using nlohmann::ordered_json;

namespace {

struct Named {
  std::string bos, eos, pad, unk;
};

ordered_json special_piece(const std::string& token) {
  return {{"SpecialToken", {{"id", token}, {"type_id", 0}}}};
}

// Adds bos and eos round a text, after what the family does anyway.
ordered_json post_processor(ordered_json base,
                            const std::vector<std::pair<std::string, int64_t>>& before,
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
      tokens[token] = {{"id", token},
                       {"ids", ordered_json::array({id})},
                       {"tokens", ordered_json::array({token})}};
    }
  }
  ordered_json around = {{"type", "TemplateProcessing"},
                         {"single", single},
                         {"pair", pair},
                         {"special_tokens", tokens}};
  if (base.is_null()) return around;
  return {{"type", "Sequence"},
          {"processors", ordered_json::array({std::move(base), std::move(around)})}};
}

struct Ends {
  bool bos = false, eos = false;
};

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
          {"added_tokens", added_tokens_json(vocabulary)},
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
  const std::string architecture =
      file.has("general.architecture") ? file.text("general.architecture") : "";
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
      "[text] {}: its tokenizer is of type \"{}\"; of GGUF files, byte-level BPE (type \"gpt2\") "
      "is supported. Give "
      "the model as a Hugging Face folder with tokenizer.json instead",
      origin, model);
}

std::string dump(const ordered_json& value, int indent, const std::string& origin) {
  try {
    return value.dump(indent);
  } catch (const ordered_json::exception& error) {
    throw UserError("[text] {}: its tokenizer holds text that is not valid UTF-8: {}", origin,
                    error.what());
  }
}

}  // namespace

TextAssets text_assets_from_gguf(const GgufFile& file) {
  const std::string origin = file.describe();
  require_byte_level(file, origin);
  const auto vocabulary = read_vocabulary(file, origin);
  auto parts = pre_tokenizer_of(
      file.has("tokenizer.ggml.pre") ? file.text("tokenizer.ggml.pre") : "default", origin);
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
  if (file.has("tokenizer.chat_template"))
    files["chat_template.jinja"] = file.text("tokenizer.chat_template");
  return build_assets(std::move(files), origin);
}

}  // namespace aitraining::text
