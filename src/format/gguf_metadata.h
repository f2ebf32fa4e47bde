#pragma once
// GGUF's key-value part. Values stay in the file: only their place and type are kept, so that nothing is allocated
// from a length that the file merely claims.
#include <map>
#include <string>
#include <string_view>

#include "aitraining/core/files.h"

namespace aitraining::format {

enum class GgufType : uint32_t {
  u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64
};

// Walks over the mapped bytes; each step is checked against the end. UserError naming the file.
class GgufCursor {
 public:
  GgufCursor(const MappedFile& file, uint64_t at) : file_(&file), at_(at) {}
  uint64_t at() const { return at_; }
  uint64_t left() const { return file_->bytes().size() - at_; }
  template <class T>
  T take(const char* what);
  std::string_view take_string(const char* what);
  void skip(uint64_t bytes, const char* what);
  [[noreturn]] void fail(const std::string& what) const;

 private:
  const MappedFile* file_;
  uint64_t at_;
};

struct GgufValue {
  GgufType type = GgufType::u8;
  GgufType element = GgufType::u8;  // of an array
  uint64_t count = 1;               // of an array
  uint64_t at = 0;                  // first byte of the value, or of the array's first element
};

uint64_t gguf_scalar_bytes(GgufType type);  // 0 for strings and arrays
const char* gguf_type_name(GgufType type);
std::map<std::string, GgufValue> read_gguf_metadata(GgufCursor& cursor, uint64_t count);

}  // namespace aitraining::format
