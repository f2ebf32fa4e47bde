#pragma once
// The vocabulary of a GGUF file, and what of tokenizer.json follows from it.
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "aitraining/format/gguf.h"

namespace aitraining::text {

struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<int64_t> types;  // as many as tokens

  bool is_control(size_t id) const;
  bool is_added(size_t id) const;  // control or user-defined: stays whole in a text
};

// All functions: UserError naming `origin`, the key and the entry that is wrong.
Vocabulary read_vocabulary(const format::GgufFile& file, const std::string& origin);
// The token whose id stands under `key`; empty when the file has no such key.
std::string token_at(const format::GgufFile& file, const Vocabulary& vocabulary,
                     const std::string& key, const std::string& origin);

nlohmann::ordered_json vocab_json(const Vocabulary& vocabulary, const std::string& origin);
nlohmann::ordered_json added_tokens_json(const Vocabulary& vocabulary);
nlohmann::ordered_json merges_json(const format::GgufFile& file, const std::string& origin);

}  // namespace aitraining::text
