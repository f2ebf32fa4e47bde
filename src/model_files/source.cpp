#include <algorithm>
#include <set>

#include "aitraining/core/error.h"
#include "aitraining/core/files.h"
#include "aitraining/format/gguf.h"
#include "aitraining/format/strict_json.h"
#include "aitraining/model/model_config.h"
#include "gguf_source.h"
#include "named_store.h"
#include "tensor_check.h"

namespace aitraining::model {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using format::TensorStore;
constexpr const char* kEmbedding = "model.embed_tokens.weight";
constexpr const char* kHead = "lm_head.weight";

Json read_config(const fs::path& folder) {
  const fs::path file = folder / "config.json";
  if (fs::is_regular_file(file)) return format::parse_strict_json(read_file(file), file.string());
  if (fs::exists(folder / "adapter_config.json"))
    throw UserError("{}: an adapter, not a model: config.json is not there; name the adapter's base model",
                    folder.string());
  throw UserError("{}: not a model folder: neither config.json nor a .gguf file is there", folder.string());
}

std::optional<Json> read_generation_config(const fs::path& folder) {
  const fs::path file = folder / "generation_config.json";
  if (!fs::is_regular_file(file)) return std::nullopt;
  Json json = format::parse_strict_json(read_file(file), file.string());
  if (!json.is_object()) throw UserError("{}: not a JSON object", file.string());
  return json;
}

// Checkpoints of the bare decoder are saved without "model." in front.
std::string bare_name(const std::string& name) { return name.starts_with("model.") ? name.substr(6) : name; }

// A tied matrix may be saved under the head's name alone.
Rename with_tied_head(const ModelConfig& config, const TensorStore& store, const Rename& rename) {
  if (!config.tie_word_embeddings || store.tensors().contains(rename(kEmbedding)) || !store.tensors().contains(kHead))
    return rename;
  return [rename](const std::string& name) { return name == kEmbedding ? kHead : rename(name); };
}

Rename choose_names(const ModelConfig& config, const TensorStore& store) {
  const Rename plain = with_tied_head(config, store, [](const std::string& name) { return name; });
  const Rename bare = with_tied_head(config, store, bare_name);
  const auto missing = missing_tensors(config, store, plain), missing_bare = missing_tensors(config, store, bare);
  if (missing.empty()) return plain;
  if (missing_bare.empty()) return bare;
  const auto& fewer = missing_bare.size() < missing.size() ? missing_bare : missing;
  throw UserError("{}: {} of {} tensors are missing: {}", store.describe(), fewer.size(),
                  expected_tensors(config).size(), name_list(fewer));
}

// A tied head that is stored as well must be the embedding; else the tie in the config is wrong.
void check_tied_head(const TensorStore& store, const std::string& embedding) {
  const format::TensorInfo &a = store.tensors().at(embedding), &b = store.tensors().at(kHead);
  constexpr int64_t kChunk = 1 << 20;
  std::vector<float> left(kChunk), right(kChunk);
  bool same = a.shape == b.shape;
  for (int64_t at = 0; same && at < a.elements(); at += kChunk) {
    const int64_t count = std::min(kChunk, a.elements() - at);
    store.read_f32(a, at, count, left.data());
    store.read_f32(b, at, count, right.data());
    same = std::equal(left.begin(), left.begin() + count, right.begin());
  }
  store.release_pages();
  if (!same)
    throw UserError("{}: tie_word_embeddings is true in config.json, but {} and {} differ; set it to false to use both",
                    store.describe(), embedding, kHead);
}

void note_unused(const TensorStore& store, const std::set<std::string>& used, std::vector<std::string>& notes) {
  const auto unused = unused_tensors(store, used);
  if (unused.empty()) return;
  notes.push_back(fmt::format("{} tensors in the files are not used by the model: {}", unused.size(), name_list(unused)));
}

void note_config(ModelConfig& config, std::vector<std::string>& notes) {
  if (config.raw.contains("auto_map")) {
    // The code it points to is neither run nor saved again, so the saved config must not ask for it.
    config.raw.erase("auto_map");
    notes.push_back("auto_map in config.json is ignored: the architecture is built in, the model's own code is not run");
  }
  const auto dropout = config.raw.find("attention_dropout");
  if (dropout != config.raw.end() && dropout->is_number() && *dropout != 0)
    notes.push_back(fmt::format("attention_dropout {} in config.json is not applied", dropout->dump()));
}

ModelSource open_folder(const fs::path& folder, ReadDepth depth) {
  ModelSource source;
  source.path = folder;
  source.config = parse_config(read_config(folder), (folder / "config.json").string());
  note_config(source.config, source.notes);
  source.generation_config = read_generation_config(folder);
  const std::shared_ptr<TensorStore> files = format::open_safetensors(folder);
  const Rename rename = choose_names(source.config, *files);
  check_shapes(source.config, *files, rename);
  auto store = std::make_shared<NamedStore>(files);
  std::set<std::string> used;
  for (const auto& [name, shape] : expected_tensors(source.config)) {
    store->add(name, rename(name));
    used.insert(rename(name));
  }
  if (source.config.tie_word_embeddings && files->tensors().contains(kHead) && used.insert(kHead).second &&
      depth == ReadDepth::values)
    check_tied_head(*files, rename(kEmbedding));
  note_unused(*files, used, source.notes);
  source.tensors = std::move(store);
  return source;
}

}  // namespace

ModelSource open_model(const fs::path& path, ReadDepth depth) {
  if (!fs::exists(path)) throw UserError("{}: no such model folder or file", path.string());
  const fs::path absolute = fs::absolute(path).lexically_normal();
  const auto gguf = format::find_gguf(absolute);
  if (!gguf && !fs::is_directory(absolute))
    throw UserError("{}: not a model: name a folder with config.json and safetensors files, or a .gguf file",
                    path.string());
  ModelSource source = gguf ? open_gguf_model(*gguf) : open_folder(absolute, depth);
  source.path = absolute;
  return source;
}

}  // namespace aitraining::model
