#include "aitraining/format/gguf.h"

#include <algorithm>

#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"
#include "aitraining/format/strict_json.h"
#include "element_reader.h"
#include "gguf_metadata.h"
#include "gguf_tensors.h"
#include "numbers.h"

namespace aitraining::format {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kDefaultAlignment = 32;

class MappedGguf final : public GgufFile {
 public:
  explicit MappedGguf(const fs::path& path) : file_(path) {
    GgufCursor cursor(file_, 0);
    const GgufCounts counts = read_gguf_head(cursor, path);
    metadata_ = read_gguf_metadata(cursor, counts.values);
    // Split files hold a part of the tensors each.
    if (has("split.count") && integer("split.count") > 1)
      throw UserError("{}: one of {} parts of a split GGUF; join them first (gguf-split --merge)", path.string(),
                      integer("split.count"));
    for (GgufTensor& tensor : read_gguf_tensors(cursor, counts.tensors, alignment())) {
      bytes_ += tensor.bytes;
      extents_[tensor.info.name] = {&file_, tensor.offset, tensor.info.dtype, tensor.info.elements()};
      const std::string name = tensor.info.name;
      infos_.emplace(name, std::move(tensor.info));
    }
    release_pages();
  }

  const std::map<std::string, TensorInfo>& tensors() const override { return infos_; }
  void read_f32(const TensorInfo& info, int64_t first, int64_t count, float* out) const override {
    read_elements_f32(extent(info), first, count, out);
  }
  void read_bf16(const TensorInfo& info, int64_t first, int64_t count, uint16_t* out) const override {
    read_elements_bf16(extent(info), first, count, out);
  }
  void release_pages() const override { file_.release(0, file_.bytes().size()); }
  std::string describe() const override { return fmt::format("{} (GGUF)", file_.path().string()); }
  uint64_t bytes() const override { return bytes_; }

  bool has(const std::string& key) const override { return metadata_.contains(key); }
  int64_t integer(const std::string& key) const override { return integer_at(key, value(key).type, value(key).at); }
  double real(const std::string& key) const override { return real_at(key, value(key).type, value(key).at); }

  bool boolean(const std::string& key, bool fallback) const override {
    if (!has(key)) return fallback;
    const GgufValue& found = value(key);
    if (found.type != GgufType::boolean) wrong_kind(key, "a bool");
    return load<uint8_t>(file_.bytes().data() + found.at) != 0;
  }

  std::string text(const std::string& key) const override {
    const GgufValue& found = value(key);
    if (found.type != GgufType::string) wrong_kind(key, "a string");
    return std::string(GgufCursor(file_, found.at).take_string("a string"));
  }

  std::vector<std::string> texts(const std::string& key) const override {
    const GgufValue& found = array(key);
    if (found.element != GgufType::string) wrong_kind(key, "an array of strings");
    std::vector<std::string> out;
    GgufCursor cursor(file_, found.at);
    for (uint64_t i = 0; i < found.count; ++i) out.emplace_back(cursor.take_string("a string"));
    return out;
  }

  std::vector<int64_t> integers(const std::string& key) const override {
    return elements<int64_t>(key, [&](GgufType type, uint64_t at) { return integer_at(key, type, at); });
  }
  std::vector<float> reals(const std::string& key) const override {
    return elements<float>(key, [&](GgufType type, uint64_t at) { return static_cast<float>(real_at(key, type, at)); });
  }

 private:
  const Extent& extent(const TensorInfo& info) const {
    const auto found = extents_.find(info.name);
    AIT_CHECK(found != extents_.end(), "no tensor {} in {}", info.name, describe());
    return found->second;
  }

  const GgufValue& value(const std::string& key) const {
    const auto found = metadata_.find(key);
    if (found == metadata_.end()) throw UserError("{}: the metadata lack \"{}\"", file_.path().string(), key);
    return found->second;
  }
  const GgufValue& array(const std::string& key) const {
    const GgufValue& found = value(key);
    if (found.type != GgufType::array) wrong_kind(key, "an array");
    return found;
  }

  [[noreturn]] void wrong_kind(const std::string& key, const char* wanted) const {
    const GgufValue& found = value(key);
    const std::string kind = found.type == GgufType::array
                                 ? fmt::format("an array of {}", gguf_type_name(found.element))
                                 : gguf_type_name(found.type);
    throw UserError("{}: the metadata value \"{}\" is {}, {} was expected", file_.path().string(), key, kind, wanted);
  }

  template <class T, class Get>
  std::vector<T> elements(const std::string& key, Get&& get) const {
    const GgufValue& found = array(key);
    const uint64_t width = gguf_scalar_bytes(found.element);
    if (width == 0) wrong_kind(key, "an array of numbers");
    std::vector<T> out;
    for (uint64_t i = 0; i < found.count; ++i) out.push_back(get(found.element, found.at + i * width));
    return out;
  }

  int64_t integer_at(const std::string& key, GgufType type, uint64_t at) const {
    const std::byte* from = file_.bytes().data() + at;
    switch (type) {
      case GgufType::u8: return load<uint8_t>(from);
      case GgufType::i8: return load<int8_t>(from);
      case GgufType::u16: return load<uint16_t>(from);
      case GgufType::i16: return load<int16_t>(from);
      case GgufType::u32: return load<uint32_t>(from);
      case GgufType::i32: return load<int32_t>(from);
      case GgufType::i64: return load<int64_t>(from);
      case GgufType::u64:
        if (load<uint64_t>(from) > static_cast<uint64_t>(INT64_MAX))
          throw UserError("{}: the metadata value \"{}\" is too large: {}", file_.path().string(), key,
                          load<uint64_t>(from));
        return static_cast<int64_t>(load<uint64_t>(from));
      default: wrong_kind(key, "an integer");
    }
  }
  double real_at(const std::string& key, GgufType type, uint64_t at) const {
    const std::byte* from = file_.bytes().data() + at;
    if (type == GgufType::f32) return load<float>(from);
    if (type == GgufType::f64) return load<double>(from);
    wrong_kind(key, "a floating-point number");
  }

  uint64_t alignment() const {
    const int64_t given = has("general.alignment") ? integer("general.alignment") : kDefaultAlignment;
    if (given <= 0 || given > (1 << 30) || (given & (given - 1)) != 0)
      throw UserError("{}: general.alignment {} is not a power of two", file_.path().string(), given);
    return static_cast<uint64_t>(given);
  }

  MappedFile file_;
  std::map<std::string, GgufValue> metadata_;
  std::map<std::string, TensorInfo> infos_;
  std::map<std::string, Extent> extents_;
  uint64_t bytes_ = 0;
};

}  // namespace

std::shared_ptr<GgufFile> GgufFile::open(const fs::path& file) {
  if (!fs::is_regular_file(file)) throw UserError("{}: no such file", file.string());
  return std::make_shared<MappedGguf>(file);
}

std::optional<fs::path> find_gguf(const fs::path& model_path) {
  const auto is_gguf = [](const fs::path& path) { return to_lower(path.extension().string()) == ".gguf"; };
  if (fs::is_regular_file(model_path)) return is_gguf(model_path) ? std::optional(model_path) : std::nullopt;
  if (!fs::is_directory(model_path) || fs::exists(model_path / "config.json")) return std::nullopt;
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(model_path))
    if (entry.is_regular_file() && is_gguf(entry.path())) found.push_back(entry.path().filename().string());
  if (found.empty()) return std::nullopt;
  std::sort(found.begin(), found.end());
  if (found.size() > 1)
    throw UserError("{}: {} GGUF files are there ({}); name one of them as the model", model_path.string(), found.size(),
                    join(found, ", "));
  return model_path / found.front();
}

}  // namespace aitraining::format
