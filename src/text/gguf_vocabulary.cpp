#include "gguf_vocabulary.h"

#include <set>

#include "aitraining/core/error.h"
#include "byte_alphabet.h"

namespace aitraining::text {

using format::GgufFile;
using nlohmann::ordered_json;

namespace {

enum TokenType { kNormal = 1, kControl = 3, kUserDefined = 4, kUnused = 5 };

constexpr const char* kTokens = "tokenizer.ggml.tokens";

}  // namespace

bool Vocabulary::is_control(size_t id) const {
  return types[id] == kControl;
}

bool Vocabulary::is_added(size_t id) const {
  return is_control(id) || types[id] == kUserDefined;
}

Vocabulary read_vocabulary(const GgufFile& file, const std::string& origin) {
  Vocabulary vocabulary{.tokens = file.texts(kTokens), .types = {}};
  if (file.has("tokenizer.ggml.token_type"))
    vocabulary.types = file.integers("tokenizer.ggml.token_type");
  if (vocabulary.types.empty()) vocabulary.types.assign(vocabulary.tokens.size(), kNormal);
  if (vocabulary.types.size() != vocabulary.tokens.size()) {
    throw UserError("[text] {}: tokenizer.ggml.token_type has {} entries, tokenizer.ggml.tokens {}",
                    origin, vocabulary.types.size(), vocabulary.tokens.size());
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
      throw UserError("[text] {}: {} holds \"{}\" twice (the second time as id {})", origin,
                      kTokens, token, id);
    }
    // Straight to the end: ordered_json's own insertion searches the whole object each time.
    entries.Container::emplace_back(std::move(spelled), id);
  }
  return entries;
}

ordered_json added_tokens_json(const Vocabulary& vocabulary) {
  auto added = ordered_json::array();
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (!vocabulary.is_added(id)) continue;
    added.push_back({{"id", id},
                     {"content", vocabulary.tokens[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", vocabulary.is_control(id)}});
  }
  return added;
}

ordered_json merges_json(const GgufFile& file, const std::string& origin) {
  auto merges = ordered_json::array();
  for (const auto& merge : file.texts("tokenizer.ggml.merges")) {
    const size_t blank = merge.find(' ');
    if (blank == std::string::npos || blank == 0 || blank + 1 == merge.size() ||
        merge.find(' ', blank + 1) != std::string::npos) {
      throw UserError("[text] {}: tokenizer.ggml.merges holds \"{}\", which is not two pieces",
                      origin, merge);
    }
    merges.push_back({merge.substr(0, blank), merge.substr(blank + 1)});
  }
  return merges;
}

std::string token_at(const GgufFile& file, const Vocabulary& vocabulary, const std::string& key,
                     const std::string& origin) {
  if (!file.has(key)) return {};
  const int64_t id = file.integer(key);
  if (id < 0 || id >= static_cast<int64_t>(vocabulary.tokens.size())) {
    throw UserError("[text] {}: {} is {}, but there are {} tokens", origin, key, id,
                    vocabulary.tokens.size());
  }
  return vocabulary.tokens[id];
}

}  // namespace aitraining::text
