#pragma once
// Tensors in files, by name: safetensors (one file, or shards with an index) and GGUF. No torch here.
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace aitraining::format {

enum class DType { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean, q4_0, q4_1, q5_0, q5_1, q8_0, q2_k, q3_k, q4_k, q5_k, q6_k };
const char* dtype_name(DType dtype);   // "F32", "BF16", "Q4_1", ... as the formats write them

struct TensorInfo {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;  // row-major, outermost first (GGUF's order is turned round)
  int64_t elements() const;
};

// A set of tensors that can be read by element range. All errors of a broken file (UserError) name file and tensor;
// nothing is allocated from a size that was not checked against the file.
class TensorStore {
 public:
  virtual ~TensorStore() = default;
  virtual const std::map<std::string, TensorInfo>& tensors() const = 0;
  // Elements [first, first + count) of the flattened tensor as fp32 (exact for 16-bit types, dequantised otherwise).
  virtual void read_f32(const TensorInfo& info, int64_t first, int64_t count, float* out) const = 0;
  // The same rounded to nearest even bf16 (bit pattern); exact when stored as bf16.
  virtual void read_bf16(const TensorInfo& info, int64_t first, int64_t count, uint16_t* out) const = 0;
  // Gives file pages back that were read so far (resident memory).
  virtual void release_pages() const = 0;
  virtual std::string describe() const = 0;  // path and format, for messages
  virtual uint64_t bytes() const = 0;        // bytes of tensor data
};

// `path`: a .safetensors file, or a folder with model.safetensors or model.safetensors.index.json and its shards.
// Folder with only pytorch_model.bin: UserError naming the file and the safe format; pickle is never read.
std::unique_ptr<TensorStore> open_safetensors(const std::filesystem::path& path);

}  // namespace aitraining::format
