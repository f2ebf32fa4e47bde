#pragma once
// GGUF container (versions 2 and 3), as specified in ggml's docs/gguf.md.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "aitraining/format/tensor_store.h"

namespace aitraining::format {

class GgufFile : public TensorStore {
 public:
  // Maps the file and checks the whole header; UserError on anything malformed.
  static std::shared_ptr<GgufFile> open(const std::filesystem::path& file);

  virtual bool has(const std::string& key) const = 0;
  // Metadata; UserError naming the key when it is missing or of another kind. Integers of every width are int64.
  virtual int64_t integer(const std::string& key) const = 0;
  virtual double real(const std::string& key) const = 0;
  virtual bool boolean(const std::string& key, bool fallback) const = 0;
  virtual std::string text(const std::string& key) const = 0;
  virtual std::vector<std::string> texts(const std::string& key) const = 0;
  virtual std::vector<int64_t> integers(const std::string& key) const = 0;
  virtual std::vector<float> reals(const std::string& key) const = 0;
  // tensors() have GGUF's own names ("blk.0.attn_q.weight").
};

// The single .gguf of a path: the file itself, or the only *.gguf in a folder without config.json. Null when none.
std::optional<std::filesystem::path> find_gguf(const std::filesystem::path& model_path);

}  // namespace aitraining::format
