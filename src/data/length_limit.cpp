#include "aitraining/data/length_limit.h"

namespace aitraining::data {
namespace {

constexpr int64_t kDefaultBlock = 1024;
constexpr int64_t kAutomaticModelLength =
    2048;  // the reference's default, which it reads as "ask the model"

}  // namespace

LengthLimit length_limit(const LengthSettings& settings) {
  const bool given = settings.block_size > 0;
  LengthLimit limit{given ? settings.block_size : kDefaultBlock,
                    given ? "--block-size" : "default block size"};
  const auto lower = [&](int64_t tokens, const std::string& reason) {
    if (tokens > 0 && tokens < limit.tokens) limit = {tokens, reason};
  };
  if (settings.model_max_length != kAutomaticModelLength)
    lower(settings.model_max_length, "--model-max-length");
  lower(settings.max_position_embeddings, "max_position_embeddings of the model");
  if (settings.tokenizer_limit)
    lower(*settings.tokenizer_limit, "model_max_length of the tokenizer");
  return limit;
}

}  // namespace aitraining::data
