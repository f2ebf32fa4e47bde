#include "safetensors_header.h"

#include <algorithm>

#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"
#include "aitraining/format/strict_json.h"
#include "dtype.h"
#include "numbers.h"

namespace aitraining::format {
namespace {

using Json = nlohmann::json;

// The format's own limit, which its reference implementation enforces as well.
constexpr uint64_t kMaxHeader = 100'000'000;
// A header needs three levels; what is nested deeper is no header.
constexpr int kMaxDepth = 8;
constexpr const char* kLfsPointer = "version https://git-lfs";

std::string_view header_text(const MappedFile& file) {
  const auto bytes = file.bytes();
  const std::string path = file.path().string();
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (all.starts_with(kLfsPointer))
    throw UserError("{}: a Git LFS pointer, not the weights; fetch the file itself (git lfs pull)", path);
  if (bytes.size() < 8)
    throw UserError("{}: not a safetensors file: {} bytes, the length of the header alone takes 8", path, bytes.size());
  const auto length = load<uint64_t>(bytes.data());
  if (length > kMaxHeader)
    throw UserError("{}: not a safetensors file: a header of {} bytes is over the format's limit of {}", path, length,
                    kMaxHeader);
  if (length > bytes.size() - 8)
    throw UserError("{}: broken safetensors file: the header should take {} bytes, {} are there (incomplete download?)",
                    path, length, bytes.size() - 8);
  return all.substr(8, length);
}

class EntryParser {
 public:
  EntryParser(const MappedFile& file, uint64_t data_begin)
      : path_(file.path().string()), data_begin_(data_begin), data_size_(file.bytes().size() - data_begin) {}

  HeaderEntry parse(const std::string& name, const Json& value) const {
    HeaderEntry entry;
    entry.info.name = name;
    if (!value.is_object()) fail(name, "its entry is not an object");
    for (const auto& [key, unused] : value.items())
      if (key != "dtype" && key != "shape" && key != "data_offsets")
        fail(name, fmt::format("unknown key \"{}\"", printable(key)));
    entry.info.dtype = parse_dtype(name, value);
    entry.info.shape = parse_shape(name, value);
    const auto elements = checked_elements(entry.info.shape);
    const int64_t width = block_layout(entry.info.dtype).bytes;
    int64_t expected = 0;
    if (!elements || __builtin_mul_overflow(*elements, width, &expected))
      fail(name, fmt::format("shape {} is too large for any file", shape_text(entry.info.shape)));
    const auto [begin, end] = parse_offsets(name, value);
    if (end - begin != static_cast<uint64_t>(expected))
      fail(name, fmt::format("shape {} of {} takes {} bytes, data_offsets span {}", shape_text(entry.info.shape),
                             dtype_name(entry.info.dtype), expected, end - begin));
    entry.offset = data_begin_ + begin;
    entry.bytes = end - begin;
    return entry;
  }

  [[noreturn]] void fail(const std::string& name, const std::string& what) const {
    throw UserError("{}: broken safetensors header: tensor \"{}\": {}", path_, printable(name), what);
  }

 private:
  const Json& member(const std::string& name, const Json& value, const char* key) const {
    const auto found = value.find(key);
    if (found == value.end()) fail(name, fmt::format("no \"{}\"", key));
    return *found;
  }

  DType parse_dtype(const std::string& name, const Json& value) const {
    const Json& dtype = member(name, value, "dtype");
    if (!dtype.is_string()) fail(name, "dtype is not a string");
    const auto& text = dtype.get_ref<const std::string&>();
    const auto known = safetensors_dtype(text);
    if (!known)
      fail(name, fmt::format("dtype {} is not supported (F64, F32, F16, BF16, I64, I32, I16, I8, U8, BOOL are)",
                             printable(text)));
    return *known;
  }

  std::vector<int64_t> parse_shape(const std::string& name, const Json& value) const {
    const Json& shape = member(name, value, "shape");
    if (!shape.is_array()) fail(name, "shape is not an array");
    std::vector<int64_t> dims;
    for (const Json& dim : shape) {
      if (!dim.is_number_unsigned() || dim.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
        fail(name, fmt::format("{} in its shape is not a size", printable(dim.dump())));
      dims.push_back(dim.get<int64_t>());
    }
    return dims;
  }

  std::pair<uint64_t, uint64_t> parse_offsets(const std::string& name, const Json& value) const {
    const Json& offsets = member(name, value, "data_offsets");
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned())
      fail(name, fmt::format("data_offsets {} is not a pair of offsets", printable(offsets.dump())));
    const auto begin = offsets[0].get<uint64_t>(), end = offsets[1].get<uint64_t>();
    if (begin > end) fail(name, fmt::format("data_offsets [{}, {}] are reversed", begin, end));
    if (end > data_size_)
      fail(name, fmt::format("data_offsets [{}, {}] reach beyond the {} bytes of data in the file (incomplete "
                             "download?)", begin, end, data_size_));
    return {begin, end};
  }

  std::string path_;
  uint64_t data_begin_, data_size_;
};

void check_metadata(const std::string& path, const Json& metadata) {
  if (!metadata.is_object()) throw UserError("{}: broken safetensors header: __metadata__ is not an object", path);
  for (const auto& [key, value] : metadata.items())
    if (!value.is_string())
      throw UserError("{}: broken safetensors header: __metadata__ \"{}\" is not a string", path, printable(key));
}

// Data follow one another without holes from the end of the header to the end of the file.
void check_layout(const EntryParser& parser, std::vector<HeaderEntry>& entries, uint64_t data_begin, uint64_t file_size,
                  const std::string& path) {
  std::sort(entries.begin(), entries.end(), [](const HeaderEntry& a, const HeaderEntry& b) {
    return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
  });
  uint64_t at = data_begin;
  for (const HeaderEntry& entry : entries) {
    if (entry.offset < at) parser.fail(entry.info.name, "its data overlap those of another tensor");
    if (entry.offset > at)
      parser.fail(entry.info.name, fmt::format("a hole of {} bytes lies before its data", entry.offset - at));
    at += entry.bytes;
  }
  if (at != file_size)
    throw UserError("{}: broken safetensors file: {} bytes behind the last tensor belong to none", path, file_size - at);
}

}  // namespace

std::vector<HeaderEntry> read_safetensors_header(const MappedFile& file) {
  const std::string path = file.path().string();
  const std::string_view text = header_text(file);
  const uint64_t data_begin = 8 + text.size();
  const Json header = parse_strict_json_sorted(text, path + ": safetensors header", kMaxDepth);
  if (!header.is_object()) throw UserError("{}: broken safetensors file: the header is not a JSON object", path);
  const EntryParser parser(file, data_begin);
  std::vector<HeaderEntry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      check_metadata(path, value);
      continue;
    }
    entries.push_back(parser.parse(name, value));
  }
  check_layout(parser, entries, data_begin, file.bytes().size(), path);
  return entries;
}

}  // namespace aitraining::format
