#include "aitraining/checkpoint/export.h"

#include <unistd.h>

#include <chrono>
#include <functional>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "aitraining/core/error.h"
#include "aitraining/core/files.h"
#include "aitraining/core/strings.h"
#include "aitraining/format/safetensors_writer.h"
#include "convert.h"
#include "rank_files.h"

namespace aitraining::checkpoint {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kPiece = int64_t{1} << 22;  // elements of a base weight held at a time

bool is_adapter(const ops::ParamSpec& param) { return param.name.starts_with("base_model."); }

using AdapterMap = std::map<std::string, engine::StateRange>;

AdapterMap adapters_by_name(const engine::Engine& engine) {
  AdapterMap map;
  for (auto& range : engine.whole_state()) map.emplace(range.param->name, range);
  return map;
}

// scale * B A of a module's adapter, [out * in], in fp64: the sum with W is rounded once, when it is saved.
at::Tensor adapter_delta(const AdapterMap& adapters, const std::string& module, double scale) {
  const auto& a = adapters.at(model::lora_name(module, 'A'));
  const auto& b = adapters.at(model::lora_name(module, 'B'));
  auto left = b.weight.view(b.param->shape).to(at::kDouble), right = a.weight.view(a.param->shape).to(at::kDouble);
  return at::mm(left, right).mul_(scale).view({-1}).cpu();
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

// Parameters of the chain that `wanted` accepts, in order.
std::vector<format::PlannedTensor> plan_tensors(const ops::Chain& chain, format::DType dtype,
                                                bool (*wanted)(const ops::ParamSpec&)) {
  std::vector<format::PlannedTensor> plan;
  for (const auto& group : chain.groups) {
    for (const auto& param : group->params()) {
      if (wanted(param)) plan.push_back({param.name, dtype, param.shape});
    }
  }
  return plan;
}

bool is_model(const ops::ParamSpec& param) { return !is_adapter(param); }

std::vector<RankFiles::Plan> model_files(const SavingRanks& ranks, const fs::path& folder, format::DType dtype,
                                         uint64_t shard_bytes) {
  const auto shards = split_into_shards(plan_tensors(ranks.engine.chain(), dtype, is_model),
                                        static_cast<int64_t>(at::elementSize(scalar_type(dtype))), shard_bytes);
  std::vector<RankFiles::Plan> plans;
  for (size_t s = 0; s < shards.size(); ++s) {
    plans.push_back({folder / shard_name(s, shards.size()), shards[s].tensors});
  }
  if (shards.size() > 1 && ranks.first()) write_index(folder, shards);
  return plans;
}

}  // namespace

void SavingRanks::visit(const std::function<void(const engine::StateRange&)>& write) const {
  if (!shared_folder) {
    engine.stream_state(write);
    return;
  }
  for (const auto& range : engine.owned_state()) write(range);
}

bool folder_is_shared(const fs::path& folder, comm::ProcessGroup& group) {
  if (group.size() == 1) return true;
  // The name carries rank 0's process and time: a file of another run on another machine is not taken for it.
  auto nonce = at::zeros({1}, at::kLong);
  if (group.rank() == 0) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    nonce.fill_(static_cast<int64_t>(now) ^ (static_cast<int64_t>(::getpid()) << 40));
  }
  const auto halves = group.sum({static_cast<double>(nonce.item<int64_t>() >> 32),
                                 static_cast<double>(nonce.item<int64_t>() & 0xffffffff)});
  const fs::path probe = folder / fmt::format(".shared-{:.0f}-{:.0f}", halves[0], halves[1]);
  if (group.rank() == 0) write_file_atomic(probe, "");
  group.barrier();
  const double missing = group.max(fs::exists(probe) ? 0 : 1);
  if (group.rank() == 0) fs::remove(probe);
  return missing == 0;
}

void write_weights(const SavingRanks& ranks, const fs::path& folder, format::DType dtype, uint64_t shard_bytes) {
  RankFiles files(ranks, model_files(ranks, folder, dtype, shard_bytes));
  ranks.visit([&](const engine::StateRange& range) {
    if (is_model(*range.param)) files.write(range.param->name, range.first, range.weight);
  });
  files.finish();
}

void write_merged_weights(const SavingRanks& ranks, const fs::path& folder, const model::Decoder& decoder,
                          format::DType dtype, const ops::ParameterReader& base, uint64_t shard_bytes) {
  const auto adapters = adapters_by_name(ranks.engine);
  const auto& lora = *decoder.lora();
  std::set<std::string> adapted;
  for (const auto& module : decoder.adapted_modules()) adapted.insert(module.name);
  RankFiles files(ranks, model_files(ranks, folder, dtype, shard_bytes));
  // Adapters are whole on every rank and the base is in a file: the ranks share the tensors out.
  size_t index = 0;
  for (const auto& group : ranks.engine.chain().groups) {
    for (const auto& param : group->params()) {
      if (is_adapter(param)) continue;
      const auto owner = ranks.shared_folder ? index++ % static_cast<size_t>(ranks.group.size()) : 0;
      if (owner != static_cast<size_t>(ranks.group.rank())) continue;
      const std::string module = param.name.substr(0, param.name.rfind('.'));
      at::Tensor delta;
      if (adapted.contains(module) && param.name.ends_with(".weight")) {
        delta = adapter_delta(adapters, module, lora.alpha / static_cast<double>(lora.r));
      }
      for (int64_t first = 0; first < param.numel; first += kPiece) {
        auto value = at::empty({std::min(kPiece, param.numel - first)}, at::kFloat);
        base(param, first, value);
        if (delta.defined()) value = value + delta.narrow(0, first, value.numel());
        files.write(param.name, first, value);
      }
    }
  }
  files.finish();
}

namespace {

void write_adapter_config(const fs::path& folder, const model::Decoder& decoder, const std::string& base_model) {
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

}  // namespace

void write_adapter(const SavingRanks& ranks, const fs::path& folder, const model::Decoder& decoder,
                   const std::string& base_model) {
  RankFiles files(ranks, {{folder / "adapter_model.safetensors",
                           plan_tensors(ranks.engine.chain(), format::DType::f32, is_adapter)}});
  ranks.visit([&](const engine::StateRange& range) {
    if (is_adapter(*range.param)) files.write(range.param->name, range.first, range.weight);
  });
  files.finish();
  if (ranks.first()) write_adapter_config(folder, decoder, base_model);
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
