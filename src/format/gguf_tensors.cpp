#include "gguf_tensors.h"

#include <algorithm>
#include <set>

#include "aitraining/core/error.h"
#include "aitraining/format/strict_json.h"
#include "dtype.h"

namespace aitraining::format {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint32_t kLfsMagic = 0x73726576;  // "vers", as a Git LFS pointer begins
constexpr uint32_t kMaxDims = 4;
constexpr uint64_t kMaxName = 65535;
// Smallest possible entries: a key of one byte with a value of one; a name without bytes and without dimensions.
constexpr uint64_t kMinValueBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 4 + 4 + 8;

std::vector<int64_t> take_shape(GgufCursor& cursor, const std::string& name) {
  const auto dims = cursor.take<uint32_t>("the number of dimensions");
  if (dims > kMaxDims)
    cursor.fail(fmt::format("tensor \"{}\": {} dimensions, {} at most are allowed", printable(name), dims, kMaxDims));
  std::vector<int64_t> shape;
  for (uint32_t i = 0; i < dims; ++i) {
    const auto size = cursor.take<uint64_t>("a dimension");
    if (size > static_cast<uint64_t>(INT64_MAX))
      cursor.fail(fmt::format("tensor \"{}\": dimension {} is not a size", printable(name), size));
    shape.push_back(static_cast<int64_t>(size));
  }
  // GGUF writes the innermost dimension first.
  std::reverse(shape.begin(), shape.end());
  return shape;
}

uint64_t stored_bytes(const GgufCursor& cursor, const TensorInfo& info) {
  const BlockLayout layout = block_layout(info.dtype);
  const int64_t row = info.shape.empty() ? 1 : info.shape.back();
  if (row % layout.elements != 0)
    cursor.fail(fmt::format("tensor \"{}\": rows of {} elements do not fill blocks of {} ({})", printable(info.name),
                            row, layout.elements, dtype_name(info.dtype)));
  const auto elements = checked_elements(info.shape);
  int64_t bytes = 0;
  if (!elements || __builtin_mul_overflow(*elements / layout.elements, layout.bytes, &bytes))
    cursor.fail(fmt::format("tensor \"{}\": shape {} is too large for any file", printable(info.name),
                            shape_text(info.shape)));
  return static_cast<uint64_t>(bytes);
}

GgufTensor take_tensor(GgufCursor& cursor) {
  GgufTensor tensor;
  const std::string_view name = cursor.take_string("the name of a tensor");
  if (name.empty() || name.size() > kMaxName) cursor.fail(fmt::format("a tensor's name of {} bytes", name.size()));
  tensor.info.name = name;
  tensor.info.shape = take_shape(cursor, tensor.info.name);
  const auto type = cursor.take<uint32_t>("the type of a tensor");
  const auto dtype = ggml_dtype(type);
  if (!dtype)
    cursor.fail(fmt::format("tensor \"{}\" is stored as {}, which is not supported ({} are)",
                            printable(tensor.info.name), ggml_type_name(type), readable_ggml_types()));
  tensor.info.dtype = *dtype;
  tensor.offset = cursor.take<uint64_t>("the offset of a tensor");
  tensor.bytes = stored_bytes(cursor, tensor.info);
  return tensor;
}

uint64_t aligned(uint64_t at, uint64_t alignment) { return (at + alignment - 1) / alignment * alignment; }

}  // namespace

GgufCounts read_gguf_head(GgufCursor& cursor, const std::filesystem::path& path) {
  const auto magic = cursor.take<uint32_t>("the magic number");
  if (magic == kLfsMagic)
    throw UserError("{}: a Git LFS pointer, not the weights; fetch the file itself (git lfs pull)", path.string());
  if (magic != kMagic) throw UserError("{}: not a GGUF file (it does not begin with GGUF)", path.string());
  const auto version = cursor.take<uint32_t>("the version");
  if (version != 2 && version != 3)
    throw UserError("{}: GGUF version {} is not supported (little-endian versions 2 and 3 are)", path.string(), version);
  GgufCounts counts;
  counts.tensors = cursor.take<uint64_t>("the number of tensors");
  counts.values = cursor.take<uint64_t>("the number of metadata values");
  if (counts.tensors > cursor.left() / kMinTensorBytes || counts.values > cursor.left() / kMinValueBytes)
    cursor.fail(fmt::format("{} tensors and {} metadata values do not fit the file", counts.tensors, counts.values));
  return counts;
}

std::vector<GgufTensor> read_gguf_tensors(GgufCursor& cursor, uint64_t count, uint64_t alignment) {
  std::vector<GgufTensor> tensors;
  std::set<std::string> names;
  for (uint64_t i = 0; i < count; ++i) {
    tensors.push_back(take_tensor(cursor));
    if (!names.insert(tensors.back().info.name).second)
      cursor.fail(fmt::format("the tensor \"{}\" is there twice", printable(tensors.back().info.name)));
  }
  const uint64_t file_size = cursor.at() + cursor.left();
  const uint64_t data_begin = aligned(cursor.at(), alignment);
  const uint64_t data_size = data_begin < file_size ? file_size - data_begin : 0;
  uint64_t expected = 0;
  for (GgufTensor& tensor : tensors) {
    const auto fail = [&](const std::string& what) {
      cursor.fail(fmt::format("tensor \"{}\": {}", printable(tensor.info.name), what));
    };
    // Written one after another, each on its boundary: other offsets mean overlaps or holes.
    if (tensor.offset != expected)
      fail(fmt::format("its offset is {}, the tensors before it end at {}", tensor.offset, expected));
    if (tensor.offset > data_size || tensor.bytes > data_size - tensor.offset)
      fail(fmt::format("its {} bytes at offset {} reach beyond the {} bytes of data in the file (incomplete download?)",
                       tensor.bytes, tensor.offset, data_size));
    expected = aligned(tensor.offset + tensor.bytes, alignment);
    tensor.offset += data_begin;
  }
  return tensors;
}

}  // namespace aitraining::format
