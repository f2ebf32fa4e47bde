#include "gguf_metadata.h"

#include <array>

#include "aitraining/core/error.h"
#include "aitraining/format/strict_json.h"
#include "numbers.h"

namespace aitraining::format {
namespace {

constexpr uint64_t kMaxName = 65535;  // the specification's limit of a key
// The specification allows arrays of arrays; no known writer nests them more than once.
constexpr int kMaxArrayDepth = 4;

struct TypeRow {
  const char* name;
  uint64_t bytes;
};
constexpr std::array<TypeRow, 13> kTypes{{{"uint8", 1}, {"int8", 1}, {"uint16", 2}, {"int16", 2}, {"uint32", 4},
                                          {"int32", 4}, {"float32", 4}, {"bool", 1}, {"string", 0}, {"array", 0},
                                          {"uint64", 8}, {"int64", 8}, {"float64", 8}}};

GgufType take_type(GgufCursor& cursor) {
  const auto type = cursor.take<uint32_t>("the type of a value");
  if (type >= kTypes.size()) cursor.fail(fmt::format("unknown type {} of a metadata value", type));
  return static_cast<GgufType>(type);
}

void skip_elements(GgufCursor& cursor, GgufType type, uint64_t count, int depth);

void skip_array(GgufCursor& cursor, GgufValue& value, int depth) {
  if (depth >= kMaxArrayDepth) cursor.fail(fmt::format("arrays nested deeper than {} levels", kMaxArrayDepth));
  value.element = take_type(cursor);
  value.count = cursor.take<uint64_t>("the length of an array");
  value.at = cursor.at();
  skip_elements(cursor, value.element, value.count, depth + 1);
}

void skip_elements(GgufCursor& cursor, GgufType type, uint64_t count, int depth) {
  if (const uint64_t width = gguf_scalar_bytes(type)) {
    if (count > cursor.left() / width) cursor.fail(fmt::format("an array of {} elements does not fit the file", count));
    return cursor.skip(count * width, "an array");
  }
  for (uint64_t i = 0; i < count; ++i) {
    GgufValue unused;
    if (type == GgufType::string) cursor.take_string("a string in an array");
    else skip_array(cursor, unused, depth);
  }
}

GgufValue take_value(GgufCursor& cursor) {
  GgufValue value;
  value.type = take_type(cursor);
  value.at = cursor.at();
  if (value.type == GgufType::array) skip_array(cursor, value, 0);
  else skip_elements(cursor, value.type, 1, 0);
  return value;
}

}  // namespace

template <class T>
T GgufCursor::take(const char* what) {
  if (left() < sizeof(T)) fail(fmt::format("the file ends inside {}", what));
  const T value = load<T>(file_->bytes().data() + at_);
  at_ += sizeof(T);
  return value;
}
template uint32_t GgufCursor::take<uint32_t>(const char*);
template uint64_t GgufCursor::take<uint64_t>(const char*);

void GgufCursor::skip(uint64_t bytes, const char* what) {
  if (left() < bytes) fail(fmt::format("the file ends inside {}", what));
  at_ += bytes;
}

std::string_view GgufCursor::take_string(const char* what) {
  const auto length = take<uint64_t>(what);
  const auto* begin = reinterpret_cast<const char*>(file_->bytes().data()) + at_;
  skip(length, what);
  return {begin, length};
}

void GgufCursor::fail(const std::string& what) const {
  throw UserError("{}: broken GGUF file (at byte {}): {}", file_->path().string(), at_, what);
}

uint64_t gguf_scalar_bytes(GgufType type) { return kTypes[static_cast<size_t>(type)].bytes; }
const char* gguf_type_name(GgufType type) { return kTypes[static_cast<size_t>(type)].name; }

std::map<std::string, GgufValue> read_gguf_metadata(GgufCursor& cursor, uint64_t count) {
  std::map<std::string, GgufValue> values;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string_view key = cursor.take_string("a metadata key");
    if (key.empty() || key.size() > kMaxName)
      cursor.fail(fmt::format("a metadata key of {} bytes (1 to {} are allowed)", key.size(), kMaxName));
    const GgufValue value = take_value(cursor);
    if (!values.emplace(key, value).second)
      cursor.fail(fmt::format("the metadata key \"{}\" is there twice", printable(key)));
  }
  return values;
}

}  // namespace aitraining::format
