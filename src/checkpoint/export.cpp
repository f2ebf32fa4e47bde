#include "aitraining/checkpoint/export.h"

#include <functional>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "aitraining/core/error.h"
#include "aitraining/core/files.h"
#include "aitraining/core/strings.h"
#include "aitraining/format/safetensors_writer.h"
#include "convert.h"

namespace aitraining::checkpoint {
namespace fs = std::filesystem;
namespace {

using RangeMap = std::map<std::string, const engine::StateRange*>;

RangeMap by_name(const std::vector<engine::StateRange>& ranges) {
  RangeMap map;
  for (const auto& range : ranges) map[range.param->name] = &range;
  return map;
}

bool is_adapter(const engine::StateRange& range) { return range.param->name.starts_with("base_model."); }

// scale * B A of a module's adapter, [out, in], in fp64: the sum with W is rounded once, when it is saved.
at::Tensor adapter_delta(const RangeMap& ranges, const std::string& module, double scale) {
  const auto& a = *ranges.at(model::lora_name(module, 'A'));
  const auto& b = *ranges.at(model::lora_name(module, 'B'));
  auto left = b.weight.view(b.param->shape).to(at::kDouble), right = a.weight.view(a.param->shape).to(at::kDouble);
  return at::mm(left, right).mul_(scale);
}

struct Shard {
  std::vector<format::PlannedTensor> tensors;
  uint64_t bytes = 0;
};

std::vector<Shard> split_into_shards(const std::vector<format::PlannedTensor>& tensors, int64_t width,
                                     uint64_t shard_bytes) {
  std::vector<Shard> shards(1);
  for (const auto& tensor : tensors) {
    uint64_t bytes = static_cast<uint64_t>(width);
    for (int64_t d : tensor.shape) bytes *= static_cast<uint64_t>(d);
    if (shards.back().bytes > 0 && shards.back().bytes + bytes > shard_bytes) shards.emplace_back();
    shards.back().tensors.push_back(tensor);
    shards.back().bytes += bytes;
  }
  return shards;
}

std::string shard_name(size_t index, size_t count) {
  return count == 1 ? "model.safetensors" : fmt::format("model-{:05}-of-{:05}.safetensors", index + 1, count);
}

void write_index(const fs::path& folder, const std::vector<Shard>& shards) {
  nlohmann::ordered_json index, map = nlohmann::ordered_json::object();
  uint64_t total = 0;
  for (size_t s = 0; s < shards.size(); ++s) {
    total += shards[s].bytes;
    for (const auto& tensor : shards[s].tensors) map[tensor.name] = shard_name(s, shards.size());
  }
  index["metadata"] = {{"total_size", total}};
  index["weight_map"] = map;
  write_file_atomic(folder / "model.safetensors.index.json", index.dump(2) + "\n");
}

// Short names when every module of that name is adapted, else whole module names: PEFT matches either.
std::vector<std::string> target_modules(const model::Decoder& decoder) {
  std::map<std::string, int64_t> count;
  for (const auto& module : decoder.adapted_modules()) ++count[module.name.substr(module.name.rfind('.') + 1)];
  for (const auto& [name, n] : count) {
    if (n == decoder.config().num_layers) continue;
    std::vector<std::string> whole;
    for (const auto& module : decoder.adapted_modules()) whole.push_back(module.name);
    return whole;
  }
  return decoder.target_names();
}

}  // namespace

void write_text_files(const fs::path& folder, const text::TextAssets& assets) {
  for (const auto& [name, content] : assets.files) {
    const fs::path path = folder / name;
    fs::create_directories(path.parent_path());
    write_file_atomic(path, content);
  }
}

void write_model_description(const fs::path& folder, const ModelParts& parts, format::DType dtype) {
  auto config = parts.source.config.raw;
  config["vocab_size"] = parts.decoder.config().vocab_size;
  config["dtype"] = torch_dtype_name(dtype);
  // The older spelling would contradict the newer one when the training type differs from the stored type.
  if (config.contains("torch_dtype")) config["torch_dtype"] = torch_dtype_name(dtype);
  write_file_atomic(folder / "config.json", config.dump(2) + "\n");
  if (parts.source.generation_config) {
    write_file_atomic(folder / "generation_config.json", parts.source.generation_config->dump(2) + "\n");
  }
  write_text_files(folder, parts.assets);
}

namespace {

// Value of one tensor to be saved, flat.
using ValueOf = std::function<at::Tensor(const engine::StateRange&)>;

void write_shards(const fs::path& folder, const std::vector<engine::StateRange>& ranges, format::DType dtype,
                  uint64_t shard_bytes, const ValueOf& value_of) {
  const auto map = by_name(ranges);
  std::vector<format::PlannedTensor> plan;
  for (const auto& range : ranges) {
    if (!is_adapter(range)) plan.push_back({range.param->name, dtype, range.param->shape});
  }
  const auto shards = split_into_shards(plan, at::elementSize(scalar_type(dtype)), shard_bytes);
  for (size_t s = 0; s < shards.size(); ++s) {
    format::SafetensorsWriter writer(folder / shard_name(s, shards.size()), shards[s].tensors);
    for (const auto& tensor : shards[s].tensors) {
      const auto& range = *map.at(tensor.name);
      auto saved = to_saved(value_of(range), dtype);
      writer.write(tensor.name, range.first, range.count, saved.const_data_ptr());
    }
    writer.finish();
  }
  if (shards.size() > 1) write_index(folder, shards);
}

}  // namespace

void write_weights(const fs::path& folder, const std::vector<engine::StateRange>& ranges, format::DType dtype,
                   uint64_t shard_bytes) {
  write_shards(folder, ranges, dtype, shard_bytes, [](const engine::StateRange& range) { return range.weight; });
}

void write_merged_weights(const fs::path& folder, const std::vector<engine::StateRange>& ranges,
                          const model::Decoder& decoder, format::DType dtype, const ops::ParameterReader& base,
                          uint64_t shard_bytes) {
  const auto map = by_name(ranges);
  const auto& lora = *decoder.lora();
  std::map<std::string, std::string> adapted;  // weight -> module
  for (const auto& module : decoder.adapted_modules()) adapted[module.name + ".weight"] = module.name;
  write_shards(folder, ranges, dtype, shard_bytes, [&](const engine::StateRange& range) {
    auto value = at::empty({range.count}, at::kFloat);
    base(*range.param, range.first, value);
    if (const auto it = adapted.find(range.param->name); it != adapted.end()) {
      value = value + adapter_delta(map, it->second, lora.alpha / static_cast<double>(lora.r)).view({-1}).cpu();
    }
    return value;
  });
}

void write_adapter(const fs::path& folder, const std::vector<engine::StateRange>& ranges,
                   const model::Decoder& decoder, const std::string& base_model) {
  std::vector<format::PlannedTensor> plan;
  for (const auto& range : ranges) {
    if (is_adapter(range)) plan.push_back({range.param->name, format::DType::f32, range.param->shape});
  }
  format::SafetensorsWriter writer(folder / "adapter_model.safetensors", plan);
  for (const auto& range : ranges) {
    if (!is_adapter(range)) continue;
    auto saved = to_saved(range.weight, format::DType::f32);
    writer.write(range.param->name, range.first, range.count, saved.const_data_ptr());
  }
  writer.finish();
  const auto& lora = *decoder.lora();
  const bool whole_alpha = lora.alpha == static_cast<double>(static_cast<int64_t>(lora.alpha));
  nlohmann::ordered_json config = {
      {"alpha_pattern", nlohmann::json::object()}, {"auto_mapping", nullptr},
      {"base_model_name_or_path", base_model},     {"bias", "none"},
      {"fan_in_fan_out", false},                   {"inference_mode", true},
      {"init_lora_weights", true},                 {"layers_pattern", nullptr},
      {"layers_to_transform", nullptr}};
  if (whole_alpha) {
    config["lora_alpha"] = static_cast<int64_t>(lora.alpha);
  } else {
    config["lora_alpha"] = lora.alpha;
  }
  config["lora_dropout"] = lora.dropout;
  config["modules_to_save"] = nullptr;
  config["peft_type"] = "LORA";
  config["r"] = lora.r;
  config["rank_pattern"] = nlohmann::json::object();
  config["revision"] = nullptr;
  config["target_modules"] = target_modules(decoder);
  config["task_type"] = "CAUSAL_LM";
  config["use_dora"] = false;
  config["use_rslora"] = false;
  write_file_atomic(folder / "adapter_config.json", config.dump(2) + "\n");
}

void remove_stale_model_files(const fs::path& folder, bool adapter_at_top) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    const bool adapter = name == "adapter_model.safetensors" || name == "adapter_config.json";
    const bool weights = name.starts_with("model") && (name.ends_with(".safetensors") || name.ends_with(".index.json"));
    if ((adapter && !adapter_at_top) || weights) fs::remove(entry.path());
  }
}

}  // namespace aitraining::checkpoint
