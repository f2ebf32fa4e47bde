#pragma once
// Hand-made weight files for tests: temporary folders, raw safetensors bytes, and a small GGUF writer.
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace aitraining::test {

class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "aitraining-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, std::string_view content) const {
    std::ofstream(path_ / name, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

template <class T>
std::string raw(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

template <class T>
std::string raw_all(const std::vector<T>& values) {
  std::string bytes;
  for (const T value : values) bytes += raw(value);
  return bytes;
}

// The file's three parts, nothing checked.
inline std::string safetensors_bytes(std::string_view header, std::string_view data) {
  return raw<uint64_t>(header.size()) + std::string(header) + std::string(data);
}

// Writes GGUF; every count and length can be falsified afterwards by editing the bytes.
class GgufBuilder {
 public:
  uint32_t version = 3;
  uint64_t alignment = 32;

  static std::string text(std::string_view value) { return raw<uint64_t>(value.size()) + std::string(value); }

  GgufBuilder& value(std::string_view key, uint32_t type, std::string_view bytes) {
    values_ += text(key) + raw(type) + std::string(bytes);
    ++num_values_;
    return *this;
  }
  GgufBuilder& u32(std::string_view key, uint32_t v) { return value(key, 4, raw(v)); }
  GgufBuilder& f32(std::string_view key, float v) { return value(key, 6, raw(v)); }
  GgufBuilder& flag(std::string_view key, bool v) { return value(key, 7, raw<uint8_t>(v)); }
  GgufBuilder& string(std::string_view key, std::string_view v) { return value(key, 8, text(v)); }
  GgufBuilder& strings(std::string_view key, const std::vector<std::string>& all) {
    std::string bytes = raw<uint32_t>(8) + raw<uint64_t>(all.size());
    for (const std::string& one : all) bytes += text(one);
    return value(key, 9, bytes);
  }

  // `dims` innermost first, as in the file; the offset follows from the tensors before unless given.
  GgufBuilder& tensor(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type, std::string_view data,
                      int64_t offset = -1) {
    infos_ += text(name) + raw<uint32_t>(static_cast<uint32_t>(dims.size())) + raw_all(dims) + raw(type);
    infos_ += raw<uint64_t>(offset < 0 ? data_.size() : static_cast<uint64_t>(offset));
    data_ += data;
    pad(data_);
    ++num_tensors_;
    return *this;
  }

  std::string bytes() const {
    std::string out = "GGUF" + raw(version) + raw(num_tensors_) + raw(num_values_) + values_ + infos_;
    pad(out);
    return out + data_;
  }

 private:
  void pad(std::string& bytes) const { bytes.resize((bytes.size() + alignment - 1) / alignment * alignment, '\0'); }
  std::string values_, infos_, data_;
  uint64_t num_values_ = 0, num_tensors_ = 0;
};

}  // namespace aitraining::test
