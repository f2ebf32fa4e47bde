#pragma once
// Elements of one tensor that lies in a mapped file, by range and converted.
#include <cstddef>
#include <cstdint>

#include "aitraining/core/files.h"
#include "aitraining/format/tensor_store.h"

namespace aitraining::format {

// Where a tensor's data are; checked against the file when the header was read.
struct Extent {
  const MappedFile* file = nullptr;
  uint64_t offset = 0;
  DType dtype = DType::f32;
  int64_t elements = 0;
};

// A range outside the tensor is a BugError. Of a large range the pages are given back while it is read.
void read_elements_f32(const Extent& extent, int64_t first, int64_t count, float* out);
void read_elements_bf16(const Extent& extent, int64_t first, int64_t count, uint16_t* out);

}  // namespace aitraining::format
