#include "aitraining/text/tokenizer.h"

#include <rust/cxx.h>

#include "aitraining-bridge/src/lib.rs.h"
#include "aitraining/core/error.h"
#include "aitraining/core/log.h"

namespace aitraining::text {

struct Tokenizer::Impl {
  rust::Box<bridge::TokenizerHandle> handle;
};

namespace {

rust::Slice<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::vector<Encoding> unpack(const bridge::Encodings& flat) {
  std::vector<Encoding> encodings(flat.counts.size());
  size_t from = 0;
  for (size_t i = 0; i < encodings.size(); ++i) {
    const size_t to = from + flat.counts[i];
    encodings[i].ids.assign(flat.ids.begin() + from, flat.ids.begin() + to);
    encodings[i].begin.assign(flat.begin.begin() + from, flat.begin.begin() + to);
    encodings[i].end.assign(flat.end.begin() + from, flat.end.begin() + to);
    from = to;
  }
  return encodings;
}

std::vector<Encoding> run_encode(const bridge::TokenizerHandle& handle, std::string_view blob,
                                 const std::vector<size_t>& ends, bool add_special_tokens) {
  try {
    return unpack(handle.encode(bytes_of(blob), {ends.data(), ends.size()}, add_special_tokens));
  } catch (const rust::Error& error) {
    throw UserError("[text] cannot tokenize: {}", error.what());
  }
}

}  // namespace

Tokenizer Tokenizer::from_json(std::string_view tokenizer_json, const std::string& origin) {
  try {
    auto impl = std::make_shared<Impl>(Impl{bridge::load_tokenizer(bytes_of(tokenizer_json))});
    for (const auto& note : impl->handle->notes()) log::warn("{}: {}", origin, std::string(note));
    return Tokenizer(std::move(impl));
  } catch (const rust::Error& error) {
    throw UserError("[text] {} is not a tokenizer in Hugging Face's tokenizer.json form: {}",
                    origin, error.what());
  }
}

Encoding Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  return std::move(run_encode(*impl_->handle, text, {text.size()}, add_special_tokens).front());
}

std::vector<Encoding> Tokenizer::encode_batch(const std::vector<std::string>& texts,
                                              bool add_special_tokens) const {
  std::string blob;
  std::vector<size_t> ends;
  ends.reserve(texts.size());
  for (const auto& text : texts) {
    blob += text;
    ends.push_back(blob.size());
  }
  return run_encode(*impl_->handle, blob, ends, add_special_tokens);
}

std::string Tokenizer::decode(const std::vector<int32_t>& ids, bool skip_special_tokens) const {
  const std::vector<uint32_t> unsigned_ids(ids.begin(), ids.end());
  try {
    return std::string(
        impl_->handle->decode({unsigned_ids.data(), unsigned_ids.size()}, skip_special_tokens));
  } catch (const rust::Error& error) {
    throw UserError("[text] cannot decode token ids: {}", error.what());
  }
}

std::optional<int32_t> Tokenizer::token_to_id(std::string_view token) const {
  const int64_t id = impl_->handle->token_to_id(bytes_of(token));
  return id < 0 ? std::nullopt : std::optional<int32_t>(static_cast<int32_t>(id));
}

std::optional<std::string> Tokenizer::id_to_token(int32_t id) const {
  if (id < 0 || !impl_->handle->has_id(static_cast<uint32_t>(id))) return std::nullopt;
  return std::string(impl_->handle->id_to_token(static_cast<uint32_t>(id)));
}

bool Tokenizer::is_special(int32_t id) const {
  return id >= 0 && impl_->handle->is_special(static_cast<uint32_t>(id));
}

int64_t Tokenizer::size() const {
  return impl_->handle->size();
}

}  // namespace aitraining::text
