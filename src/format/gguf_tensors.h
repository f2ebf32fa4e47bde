#pragma once
// GGUF's head and its list of tensors.
#include <filesystem>
#include <vector>

#include "aitraining/format/tensor_store.h"
#include "gguf_metadata.h"

namespace aitraining::format {

struct GgufCounts {
  uint64_t tensors = 0, values = 0;
};
// Magic, version and the two counts.
GgufCounts read_gguf_head(GgufCursor& cursor, const std::filesystem::path& path);

struct GgufTensor {
  TensorInfo info;
  uint64_t offset = 0;  // from the start of the file
  uint64_t bytes = 0;
};
// In the file's order, every one checked to lie whole inside the file, behind the one before it.
std::vector<GgufTensor> read_gguf_tensors(GgufCursor& cursor, uint64_t count, uint64_t alignment);

}  // namespace aitraining::format
