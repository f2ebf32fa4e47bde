#pragma once
// Writes safetensors files. Layout is known before the first byte of data, so tensors can be written in any order and
// by several ranks (each with its own byte ranges).
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "aitraining/core/files.h"
#include "aitraining/format/tensor_store.h"

namespace aitraining::format {

struct PlannedTensor {
  std::string name;
  DType dtype = DType::f32;          // f32, bf16, f16 or an integer type
  std::vector<int64_t> shape;
};

class SafetensorsWriter {
 public:
  // create: writes the header (with metadata {"format": "pt"} always) and sizes the file. join: another process has
  // created it from the same plan. Order: as given, wider types first.
  enum class Mode { create, join };
  SafetensorsWriter(std::filesystem::path file, const std::vector<PlannedTensor>& tensors,
                    const std::map<std::string, std::string>& metadata = {}, Mode mode = Mode::create);
  // Raw bytes of elements [first, first + count) of a tensor, already in its dtype.
  void write(const std::string& name, int64_t first, int64_t count, const void* data);
  void finish();  // BugError when a tensor was not written whole; fsync
  void finish_part();  // fsync alone: others write the rest
  uint64_t data_bytes() const { return data_bytes_; }        // of all tensors
  uint64_t written_bytes() const { return written_bytes_; }  // of tensors, by this writer

 private:
  struct Slot { DType dtype; uint64_t begin, end, written; };
  FileWriter file_;
  std::map<std::string, Slot> slots_;
  uint64_t data_bytes_ = 0, written_bytes_ = 0;
};

}  // namespace aitraining::format
