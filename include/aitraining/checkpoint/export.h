#pragma once
// Writes models and adapters in Hugging Face's and PEFT's file forms. Ranks that share a folder write their own byte
// ranges into the same files; where they share none, everything goes group by group through rank 0. The bytes are equal
// either way, and with every engine.
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

// The ranks that save together. Functions that take it are collective: every rank calls them alike.
struct SavingRanks {
  engine::Engine& engine;
  comm::ProcessGroup& group;
  bool shared_folder = true;

  bool first() const { return group.rank() == 0; }
  // Calls `write` for what this rank is to write.
  void visit(const std::function<void(const engine::StateRange&)>& write) const;
};

// Whether a file that rank 0 makes in `folder` is seen by all ranks. Collective.
bool folder_is_shared(const std::filesystem::path& folder, comm::ProcessGroup& group);

// model.safetensors, or shards of at most `shard_bytes` with model.safetensors.index.json. Adapters are left out.
void write_weights(const SavingRanks& ranks, const std::filesystem::path& folder, format::DType dtype,
                   uint64_t shard_bytes = kShardBytes);

// The same for the merged model of an adapter run: each adapted weight becomes round(W + scale * B A), the delta in fp32
// and rounded once. W comes from `base`, as it is stored, not from the engine's copy in the compute type.
void write_merged_weights(const SavingRanks& ranks, const std::filesystem::path& folder, const model::Decoder& decoder,
                          format::DType dtype, const ops::ParameterReader& base, uint64_t shard_bytes = kShardBytes);

// adapter_model.safetensors (fp32) and adapter_config.json as PEFT reads them.
void write_adapter(const SavingRanks& ranks, const std::filesystem::path& folder, const model::Decoder& decoder,
                   const std::string& base_model);

// Removes model files that an earlier run left in a project folder and that this run does not replace.
void remove_stale_model_files(const std::filesystem::path& folder, bool adapter_at_top);

}  // namespace aitraining::checkpoint
