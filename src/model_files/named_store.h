#pragma once
// Another store's tensors under the architecture's own names, with the rows of rotary projections put in order.
#include <map>
#include <memory>
#include <string>

#include "aitraining/format/tensor_store.h"

namespace aitraining::model {

class NamedStore final : public format::TensorStore {
 public:
  explicit NamedStore(std::shared_ptr<const format::TensorStore> inner) : inner_(std::move(inner)) {}

  // `inner_name` must be there. `rotary_heads` > 0: rows of each head are stored in adjacent pairs (as GGUF's llama
  // converter leaves them) and given out as two halves, which is Hugging Face's layout.
  void add(const std::string& name, const std::string& inner_name, int64_t rotary_heads = 0);

  const std::map<std::string, format::TensorInfo>& tensors() const override { return infos_; }
  void read_f32(const format::TensorInfo& info, int64_t first, int64_t count, float* out) const override;
  void read_bf16(const format::TensorInfo& info, int64_t first, int64_t count, uint16_t* out) const override;
  void release_pages() const override { inner_->release_pages(); }
  std::string describe() const override { return inner_->describe(); }
  uint64_t bytes() const override { return inner_->bytes(); }

 private:
  struct Source {
    const format::TensorInfo* info;
    int64_t rotary_heads;
  };
  // Calls read(inner info, first, count, out) for each contiguous piece.
  template <class T, class Read>
  void for_pieces(const format::TensorInfo& info, int64_t first, int64_t count, T* out, Read&& read) const;

  std::shared_ptr<const format::TensorStore> inner_;
  std::map<std::string, format::TensorInfo> infos_;
  std::map<std::string, Source> sources_;
};

}  // namespace aitraining::model
