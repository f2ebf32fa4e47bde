#include "buffer_pool.h"

#include <algorithm>
#include <limits>

#include "aitraining/core/error.h"

namespace aitraining::engine {

// The smallest free buffer with a capacity in [least, most], or an undefined tensor.
at::Tensor BufferPool::take_free(uint64_t least, uint64_t most) {
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->nbytes() < least || it->nbytes() > most) continue;
    if (best == free_.end() || it->nbytes() < best->nbytes()) best = it;
  }
  if (best == free_.end()) return {};
  auto buffer = *best;
  free_.erase(best);
  return buffer;
}

// Frees the largest first: they make room soonest.
void BufferPool::drop_free(uint64_t room_for) {
  std::sort(free_.begin(), free_.end(), [](const auto& a, const auto& b) { return a.nbytes() < b.nbytes(); });
  while (!free_.empty() && bytes_ + room_for > budget_) {
    bytes_ -= free_.back().nbytes();
    free_.pop_back();
  }
}

at::Tensor BufferPool::acquire(int64_t numel, at::ScalarType type) {
  const auto need = static_cast<uint64_t>(numel) * c10::elementSize(type);
  // A buffer much larger than asked for is kept for those who need all of it, as long as there is room.
  auto buffer = take_free(need, 2 * need);
  if (!buffer.defined() && bytes_ + need > budget_) {
    if (relieve_) relieve_();
    buffer = take_free(need, std::numeric_limits<uint64_t>::max());
    if (!buffer.defined()) drop_free(need);
  }
  if (!buffer.defined()) {
    buffer = at::empty({static_cast<int64_t>(need)}, at::TensorOptions().dtype(at::kByte).device(device_));
    bytes_ += buffer.nbytes();
    peak_bytes_ = std::max(peak_bytes_, bytes_);
  }
  return buffer.narrow(0, 0, static_cast<int64_t>(need)).view(type);
}

void BufferPool::give_back(at::Tensor buffer) {
  AIT_CHECK(buffer.storage_offset() == 0, "a view of a pooled buffer was given back");
  const auto bytes = static_cast<int64_t>(buffer.storage().nbytes());
  free_.push_back(at::empty({0}, buffer.options().dtype(at::kByte)).set_(buffer.storage(), 0, {bytes}, {1}));
}

}  // namespace aitraining::engine
