#pragma once
// The header of one safetensors file, wholly checked: every size is compared with the file before it is used.
#include <string>
#include <vector>

#include "aitraining/core/files.h"
#include "aitraining/format/tensor_store.h"

namespace aitraining::format {

struct HeaderEntry {
  TensorInfo info;
  uint64_t offset = 0;  // of the first byte, from the start of the file
  uint64_t bytes = 0;
};

// In order of their place in the file. UserError naming the file, and the tensor where it is about one.
std::vector<HeaderEntry> read_safetensors_header(const MappedFile& file);

}  // namespace aitraining::format
