#pragma once
// TrainingParams -> the options of each module. Pure; nothing below this file sees TrainingParams.
#include <string>

#include "aitraining/comm/process_group.h"
#include "aitraining/config/config.h"
#include "aitraining/data/length_limit.h"
#include "aitraining/data/sft.h"
#include "aitraining/engine/engine.h"
#include "aitraining/format/tensor_store.h"
#include "aitraining/launch/launch.h"
#include "aitraining/model/decoder.h"
#include "aitraining/train/trainer.h"

namespace aitraining::app {

data::LengthLimit length_limit(const config::TrainingParams& params, const model::ModelConfig& model,
                               std::optional<int64_t> tokenizer_limit);

data::SftOptions sft_options(const config::TrainingParams& params, int64_t max_length, int64_t embedding_rows);
std::optional<model::LoraOptions> lora_options(const config::TrainingParams& params);
engine::Sharding sharding_of(const config::TrainingParams& params);
// `group_backend`: single, gloo or nccl. Units that stay resident are chosen later: they depend on the model.
engine::EngineOptions engine_options(const config::TrainingParams& params, const std::string& group_backend,
                                     c10::Device device);
comm::GroupOptions group_options(const config::TrainingParams& params, const launch::RankEnvironment& rank,
                                 c10::Device device);
train::TrainerOptions trainer_options(const config::TrainingParams& params, int world_size, int64_t train_rows,
                                      int64_t valid_rows);

// Batch size, accumulation, ranks and seed as JSON: what a resumed run is compared with.
std::string batch_json(const config::TrainingParams& params, const launch::RankEnvironment& rank);

// Type that models are saved in: the training type.
format::DType training_dtype(const config::TrainingParams& params);
format::DType merge_dtype(const config::TrainingParams& params);

}  // namespace aitraining::app
