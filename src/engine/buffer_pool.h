#pragma once
// Buffers for what is whole only for a moment: gathered units, their gradients, pieces received from other ranks. They
// are kept for the next unit up to a budget, so that a step allocates nothing and the peak stays known.
#include <functional>
#include <vector>

#include <ATen/ATen.h>

namespace aitraining::engine {

class BufferPool {
 public:
  explicit BufferPool(c10::Device device) : device_(device) {}
  // Bytes that may be held at once, unless more are in use. Zero before it is set.
  void set_budget(uint64_t bytes) { budget_ = bytes; }
  // Called when the budget is reached: gives back what waits for communication. Must not acquire.
  void on_pressure(std::function<void()> relieve) { relieve_ = std::move(relieve); }

  // Uninitialised, contiguous, aligned to 64 bytes. On CUDA: to be used in the order of the current stream.
  at::Tensor acquire(int64_t numel, at::ScalarType type);
  // `buffer`: what acquire returned, and no view of it is used any more.
  void give_back(at::Tensor buffer);

  uint64_t budget() const { return budget_; }
  uint64_t bytes() const { return bytes_; }            // held now, in use and free
  uint64_t peak_bytes() const { return peak_bytes_; }

 private:
  at::Tensor take_free(uint64_t least, uint64_t most);
  void drop_free(uint64_t room_for);

  c10::Device device_;
  std::function<void()> relieve_;
  std::vector<at::Tensor> free_;  // bytes
  uint64_t budget_ = 0, bytes_ = 0, peak_bytes_ = 0;
};

}  // namespace aitraining::engine
