#pragma once
// Writes models and adapters in Hugging Face's and PEFT's file forms. Only the rank that owns ranges writes.
#include <filesystem>
#include <string>
#include <vector>

#include "aitraining/engine/engine.h"
#include "aitraining/model/decoder.h"
#include "aitraining/text/assets.h"

namespace aitraining::checkpoint {

// What a saved model is made of, besides numbers.
struct ModelParts {
  const model::ModelSource& source;
  const model::Decoder& decoder;
  const text::TextAssets& assets;
};

inline constexpr uint64_t kShardBytes = 5'000'000'000;

// config.json (vocab_size and dtype as saved), generation_config.json if the base had one, tokenizer and template files.
void write_model_description(const std::filesystem::path& folder, const ModelParts& parts, format::DType dtype);
// Tokenizer and template files alone.
void write_text_files(const std::filesystem::path& folder, const text::TextAssets& assets);

// model.safetensors, or shards of at most `shard_bytes` with model.safetensors.index.json. Adapters are left out.
void write_weights(const std::filesystem::path& folder, const std::vector<engine::StateRange>& ranges,
                   format::DType dtype, uint64_t shard_bytes = kShardBytes);

// The same for the merged model of an adapter run: each adapted weight becomes round(W + scale * B A), the delta in fp32
// and rounded once. W comes from `base`, as it is stored, not from the engine's copy in the compute type.
void write_merged_weights(const std::filesystem::path& folder, const std::vector<engine::StateRange>& ranges,
                          const model::Decoder& decoder, format::DType dtype, const ops::ParameterReader& base,
                          uint64_t shard_bytes = kShardBytes);

// adapter_model.safetensors (fp32) and adapter_config.json as PEFT reads them.
void write_adapter(const std::filesystem::path& folder, const std::vector<engine::StateRange>& ranges,
                   const model::Decoder& decoder, const std::string& base_model);

// Removes model files that an earlier run left in a project folder and that this run does not replace.
void remove_stale_model_files(const std::filesystem::path& folder, bool adapter_at_top);

}  // namespace aitraining::checkpoint
