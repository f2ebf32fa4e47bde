#pragma once
// The parts of tokenizer.json that a GGUF file only names (`tokenizer.ggml.pre`).
#include <string>

#include <nlohmann/json.hpp>

namespace aitraining::text {

struct PreTokenizer {
  nlohmann::ordered_json normalizer = nullptr;
  nlohmann::ordered_json pre_tokenizer = nullptr;
  nlohmann::ordered_json post_processor = nullptr;
  nlohmann::ordered_json decoder = nullptr;
  bool ignore_merges = false;
  bool adds_bos = false;  // what the family does when the file does not say
};

// As in the Hugging Face tokenizers these vocabularies come from. UserError for a name that is not
// known.
PreTokenizer pre_tokenizer_of(const std::string& name, const std::string& origin);

}  // namespace aitraining::text
