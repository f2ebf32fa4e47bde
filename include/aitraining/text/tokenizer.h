#pragma once
// Tokenizer in Hugging Face's tokenizer.json form, over the Rust crate `tokenizers`.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace aitraining::text {

struct Encoding {
  std::vector<int32_t> ids;
  // Byte offset in the UTF-8 input where token i begins. Blanks count; a token that holds a part of a character has the
  // range of the whole character, so the ranges of two such tokens overlap.
  std::vector<uint32_t> begin;
  std::vector<uint32_t> end;    // one past its last byte; begin == end for tokens that hold no input (added bos)
};

// Immutable after construction; encode() may be called from several threads.
class Tokenizer {
 public:
  // UserError naming `origin` when the JSON is not a tokenizer.
  static Tokenizer from_json(std::string_view tokenizer_json, const std::string& origin);

  // Special tokens written in the text are recognised; `add_special_tokens` runs the post-processor (bos, eos).
  Encoding encode(std::string_view text, bool add_special_tokens) const;
  std::vector<Encoding> encode_batch(const std::vector<std::string>& texts, bool add_special_tokens) const;
  std::string decode(const std::vector<int32_t>& ids, bool skip_special_tokens) const;
  std::optional<int32_t> token_to_id(std::string_view token) const;
  std::optional<std::string> id_to_token(int32_t id) const;
  bool is_special(int32_t id) const;   // added token with "special": true
  int64_t size() const;                // highest id + 1, added tokens included

  struct Impl;
  explicit Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace aitraining::text
