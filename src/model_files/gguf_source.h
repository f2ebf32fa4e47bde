#pragma once
// A model in a GGUF file: its config as transformers would write it, and its tensors under Hugging Face's names.
#include <filesystem>
#include <string>

#include "aitraining/format/gguf.h"
#include "aitraining/model/model_config.h"

namespace aitraining::model {

ModelSource open_gguf_model(const std::filesystem::path& file);

// "model.layers.3.self_attn.q_proj.weight" -> "blk.3.attn_q.weight"; BugError for a name the architecture has not.
std::string gguf_tensor_name(const std::string& name);
// config.json made from the metadata.
nlohmann::ordered_json gguf_config(const format::GgufFile& file);

}  // namespace aitraining::model
