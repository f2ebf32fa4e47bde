#include <algorithm>
#include <set>

#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"
#include "aitraining/format/strict_json.h"
#include "element_reader.h"
#include "safetensors_header.h"

namespace aitraining::format {
namespace {

namespace fs = std::filesystem;
constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

class SafetensorsStore final : public TensorStore {
 public:
  explicit SafetensorsStore(fs::path path) : path_(std::move(path)) {}

  // All tensors of the file, or those that `wanted` names; returns the names that were taken.
  std::set<std::string> add_file(const fs::path& file, const std::set<std::string>* wanted) {
    files_.push_back(std::make_unique<MappedFile>(file));
    std::set<std::string> taken;
    for (HeaderEntry& entry : read_safetensors_header(*files_.back())) {
      const std::string name = entry.info.name;
      if (wanted && !wanted->contains(name)) continue;
      extents_[name] = {files_.back().get(), entry.offset, entry.info.dtype, entry.info.elements()};
      bytes_ += entry.bytes;
      infos_.emplace(name, std::move(entry.info));
      taken.insert(name);
    }
    // Parsing has touched every page of the header.
    files_.back()->release(0, files_.back()->bytes().size());
    return taken;
  }

  const std::map<std::string, TensorInfo>& tensors() const override { return infos_; }
  void read_f32(const TensorInfo& info, int64_t first, int64_t count, float* out) const override {
    read_elements_f32(extent(info), first, count, out);
  }
  void read_bf16(const TensorInfo& info, int64_t first, int64_t count, uint16_t* out) const override {
    read_elements_bf16(extent(info), first, count, out);
  }
  void release_pages() const override {
    for (const auto& file : files_) file->release(0, file->bytes().size());
  }
  std::string describe() const override {
    if (files_.size() == 1) return fmt::format("{} (safetensors)", path_.string());
    return fmt::format("{} (safetensors, {} files)", path_.string(), files_.size());
  }
  uint64_t bytes() const override { return bytes_; }

 private:
  const Extent& extent(const TensorInfo& info) const {
    const auto found = extents_.find(info.name);
    AIT_CHECK(found != extents_.end(), "no tensor {} in {}", info.name, describe());
    return found->second;
  }

  fs::path path_;
  std::vector<std::unique_ptr<MappedFile>> files_;
  std::map<std::string, TensorInfo> infos_;
  std::map<std::string, Extent> extents_;
  uint64_t bytes_ = 0;
};

// Shard file -> tensors that the index puts there.
std::map<std::string, std::set<std::string>> read_index(const fs::path& index) {
  const nlohmann::json json = parse_strict_json_sorted(read_file(index), index.string());
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (!json.is_object() || map == json.end() || !map->is_object() || map->empty())
    throw UserError("{}: no \"weight_map\" that tells each tensor's file", index.string());
  std::map<std::string, std::set<std::string>> shards;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string())
      throw UserError("{}: weight_map \"{}\": the value is not a file name", index.string(), printable(tensor));
    const auto& name = file.get_ref<const std::string&>();
    // A shard lies beside its index; anything else would read files that nobody named.
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
        name.find('\0') != std::string::npos)
      throw UserError("{}: weight_map \"{}\": \"{}\" is not the name of a file in the same folder", index.string(),
                      printable(tensor), printable(name));
    shards[name].insert(tensor);
  }
  return shards;
}

std::string first_names(const std::vector<std::string>& names) {
  constexpr size_t kShown = 8;
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(kShown, names.size()); ++i) shown.push_back(printable(names[i]));
  std::string text = join(shown, ", ");
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

std::unique_ptr<TensorStore> open_sharded(const fs::path& folder) {
  const fs::path index = folder / kIndex;
  const auto shards = read_index(index);
  std::vector<std::string> missing;
  for (const auto& [file, tensors] : shards)
    if (!fs::is_regular_file(folder / file)) missing.push_back(file);
  if (!missing.empty())
    throw UserError("{}: {} of {} files that it names are not there: {}", index.string(), missing.size(), shards.size(),
                    first_names(missing));
  auto store = std::make_unique<SafetensorsStore>(folder);
  for (const auto& [file, tensors] : shards) {
    const std::set<std::string> taken = store->add_file(folder / file, &tensors);
    std::vector<std::string> absent;
    std::set_difference(tensors.begin(), tensors.end(), taken.begin(), taken.end(), std::back_inserter(absent));
    if (!absent.empty())
      throw UserError("{}: {} lacks tensors that the index puts there: {}", index.string(), printable(file),
                      first_names(absent));
  }
  return store;
}

bool is_pickle(const fs::path& file) {
  static const std::set<std::string> kExtensions = {".bin", ".pt", ".pth", ".ckpt", ".pkl"};
  return kExtensions.contains(to_lower(file.extension().string())) ||
         file.filename().string().ends_with(".bin.index.json");
}

[[noreturn]] void refuse_pickle(const fs::path& file) {
  throw UserError(
      "{}: weights in pickle form are never read, because reading them can run foreign code; convert them to "
      "safetensors (model.safetensors), for example with transformers' save_pretrained",
      file.string());
}

[[noreturn]] void refuse_folder(const fs::path& folder) {
  std::vector<fs::path> pickles;
  for (const auto& entry : fs::directory_iterator(folder))
    if (is_pickle(entry.path()) && entry.path().filename() != "training_args.bin") pickles.push_back(entry.path());
  std::sort(pickles.begin(), pickles.end());
  if (!pickles.empty()) refuse_pickle(pickles.front());
  throw UserError("{}: no weights: neither {} nor {} is there", folder.string(), kSingle, kIndex);
}

}  // namespace

std::unique_ptr<TensorStore> open_safetensors(const fs::path& path) {
  if (!fs::exists(path)) throw UserError("{}: no such file or folder", path.string());
  if (!fs::is_directory(path)) {
    if (is_pickle(path)) refuse_pickle(path);
    auto store = std::make_unique<SafetensorsStore>(path);
    store->add_file(path, nullptr);
    return store;
  }
  if (fs::is_regular_file(path / kSingle)) {
    auto store = std::make_unique<SafetensorsStore>(path);
    store->add_file(path / kSingle, nullptr);
    return store;
  }
  if (fs::exists(path / kIndex)) return open_sharded(path);
  refuse_folder(path);
}

}  // namespace aitraining::format
