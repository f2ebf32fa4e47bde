#include "tools.h"

#include <filesystem>
#include <fstream>

#include "aitraining/checkpoint/export.h"
#include "aitraining/comm/process_group.h"
#include "aitraining/core/error.h"
#include "aitraining/core/files.h"
#include "aitraining/core/log.h"
#include "aitraining/data/sft.h"
#include "aitraining/engine/engine.h"
#include "aitraining/format/safetensors_writer.h"
#include "aitraining/model/decoder.h"
#include "aitraining/text/assets.h"

namespace aitraining::app {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

// A model with its weights, for tools that only look forward.
struct LoadedModel {
  model::ModelSource source;
  std::unique_ptr<comm::ProcessGroup> group = comm::make_process_group({});
  model::Decoder decoder;
  engine::Engine engine;

  LoadedModel(const std::string& path, std::optional<model::LoraOptions> lora)
      : source(model::open_model(path)), decoder(source.config, std::move(lora)),
        engine(decoder.chain(), *group, engine::EngineOptions{}) {
    engine.load(model::base_reader(source), [](const ops::ParamGroup& g) { return g.name() != "adapters"; });
  }
};

std::vector<Json> read_jsonl(const std::string& path) {
  std::vector<Json> rows;
  for (const auto& row : data::read_rows({path, "jsonl"})) rows.push_back(row.values);
  return rows;
}

ops::Batch batch_of(const std::vector<int32_t>& ids, const model::Decoder& decoder) {
  ops::Batch batch;
  const auto n = static_cast<int64_t>(ids.size());
  batch.tokens = at::empty({n}, at::kLong);
  std::copy(ids.begin(), ids.end(), batch.tokens.data_ptr<int64_t>());
  batch.positions = at::arange(n, at::kLong);
  batch.row_keys = at::zeros({n}, at::kLong);
  batch.segment_begin = {0, n};
  batch.training = false;
  decoder.add_rope(batch);
  return batch;
}

void logits_tool(const Json& request) {
  LoadedModel loaded(request.at("model"), std::nullopt);
  const auto rows = read_jsonl(request.at("input"));
  const int64_t vocab = loaded.decoder.config().vocab_size;
  std::vector<std::vector<int32_t>> ids;
  std::vector<format::PlannedTensor> plan;
  for (const auto& row : rows) {
    if (!row.contains("ids") || !row["ids"].is_array() || row["ids"].empty()) {
      throw UserError("{} row {}: expected {{\"ids\": [token ids]}}", request.at("input").dump(), ids.size() + 1);
    }
    ids.push_back(row["ids"].get<std::vector<int32_t>>());
    for (int32_t id : ids.back()) {
      if (id < 0 || id >= vocab) throw UserError("row {}: id {} is not below {}", ids.size(), id, vocab);
    }
    plan.push_back({std::to_string(ids.size() - 1), format::DType::f32, {static_cast<int64_t>(ids.back().size()), vocab}});
  }
  format::SafetensorsWriter writer(request.at("output").get<std::string>(), plan);
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto batch = batch_of(ids[i], loaded.decoder);
    const auto values = ops::logits(loaded.engine.hidden_states(batch), loaded.decoder.head()).contiguous();
    writer.write(plan[i].name, 0, values.numel(), values.const_data_ptr());
  }
  writer.finish();
}

void tokenize_tool(const Json& request) {
  auto assets = text::open_text_assets(request.at("model").get<std::string>());
  const std::string input = request.at("input");
  const data::SplitFile file{input, "jsonl"};
  const auto rows = data::read_rows(file);
  data::SftOptions options;
  options.max_length = int64_t{1} << 30;
  std::ofstream out(request.at("output").get<std::string>());
  for (const auto& row : rows) {
    const auto prepared = data::prepare_sft(file, {row}, assets, options, "tool");
    Json line;
    line["ids"] = Json::array();
    line["trained"] = Json::array();
    if (prepared.rows.size() > 0) {
      for (int32_t id : prepared.rows.ids(0)) line["ids"].push_back(id);
      for (uint8_t trained : prepared.rows.trained(0)) line["trained"].push_back(static_cast<int>(trained));
    }
    // What the model reads, so also where a refused system message went.
    if (row.values.contains("messages") && prepared.rows.size() > 0) {
      const auto ids = prepared.rows.ids(0);
      line["text"] = assets.tokenizer.decode({ids.begin(), ids.end()}, false);
    }
    out << line.dump() << "\n";
  }
  if (!out.flush()) throw EnvironmentError("cannot write {}", request.at("output").dump());
}

model::LoraOptions lora_of(const Json& config, const std::string& path) {
  try {
    model::LoraOptions lora;
    lora.r = config.at("r");
    lora.alpha = config.at("lora_alpha");
    lora.dropout = 0;
    std::string names;
    if (config.at("target_modules").is_string()) {
      names = config["target_modules"];
    } else {
      for (const auto& name : config["target_modules"]) names += (names.empty() ? "" : ",") + name.get<std::string>();
    }
    lora.target_modules = names;
    return lora;
  } catch (const Json::exception& e) {
    throw UserError("{}: not a LoRA adapter's configuration ({})", path, e.what());
  }
}

void merge_tool(const Json& request) {
  const fs::path adapter = request.at("adapter_path").get<std::string>();
  const fs::path output = request.at("output_folder").get<std::string>();
  const std::string base = request.at("base_model_path");
  const std::string config_path = adapter / "adapter_config.json";
  const auto config = Json::parse(read_file(config_path), nullptr, false);
  if (config.is_discarded()) throw UserError("{}: not JSON", config_path);
  LoadedModel loaded(base, lora_of(config, config_path));
  const std::shared_ptr<format::TensorStore> store = format::open_safetensors(adapter / "adapter_model.safetensors");
  loaded.engine.load(
      [&](const ops::ParamSpec& param, int64_t first, at::Tensor out) {
        const auto it = store->tensors().find(param.name);
        if (it == store->tensors().end() || it->second.shape != param.shape) {
          throw UserError("{}: {} is missing or has another shape than the base model {} asks for",
                          store->describe(), param.name, base);
        }
        store->read_f32(it->second, first, out.numel(), out.data_ptr<float>());
      },
      [](const ops::ParamGroup& g) { return g.name() == "adapters"; });
  const auto assets = text::open_text_assets(base);
  fs::create_directories(output);
  const auto dtype = loaded.source.config.stored_dtype == "bfloat16" ? format::DType::bf16 : format::DType::f32;
  checkpoint::write_model_description(output, {loaded.source, loaded.decoder, assets}, dtype);
  checkpoint::write_merged_weights({loaded.engine, *loaded.group}, output, loaded.decoder, dtype,
                                   model::base_reader(loaded.source));
  log::info("Model saved to: {}", fs::absolute(output).string());
}

}  // namespace

void run_tool(const Json& request) {
  const std::string tool = request.at("tool");
  if (tool == "merge-llm-adapter") return merge_tool(request);
  if (tool == "logits") return logits_tool(request);
  if (tool == "tokenize") return tokenize_tool(request);
  throw UserError("there is no tool {}", tool);
}

}  // namespace aitraining::app
