#pragma once
// Parameters live in flat buffers, one per group; operations reach them through handles. No weight ever enters
// autograd's saved tensors, and gradients are accumulated straight into the flat gradient buffer: so an engine may
// shard, gather, release or convert a group's buffers between uses without the operations knowing.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>

namespace aitraining::ops {

// One tensor as files name it: a contiguous range of its group's flat buffer.
struct ParamSpec {
  std::string name;              // Hugging Face or PEFT name
  std::vector<int64_t> shape;
  int64_t offset = 0, numel = 0; // elements in the flat buffer
  bool decay = true;             // weight decay applies (not for biases and norms)
};

class ParamGroup;

// Handle of a weight: one or several parameters that lie end to end and are used as one matrix (q, k and v rows).
class Weight {
 public:
  Weight() = default;
  Weight(ParamGroup* group, int slot, int64_t offset, std::vector<int64_t> shape)
      : group_(group), slot_(slot), offset_(offset), shape_(std::move(shape)) {}
  bool defined() const { return group_ != nullptr; }
  bool trainable() const;
  int64_t rows() const { return shape_[0]; }
  int64_t cols() const { return shape_[1]; }
  // View of the group's compute buffer; valid while the engine keeps the group gathered.
  at::Tensor value() const;
  // grad += a @ b, without a zero fill before the first product of an update.
  void add_product(const at::Tensor& a, const at::Tensor& b) const;
  void add(const at::Tensor& gradient) const;
  // The gradient view, zero-filled if nothing was added in this update yet: for scatters.
  at::Tensor gradient() const;

 private:
  ParamGroup* group_ = nullptr;
  int slot_ = 0;
  int64_t offset_ = 0;
  std::vector<int64_t> shape_;
};

// Layout of a group and the buffers that operations see. Not copied or moved once handles exist.
class ParamGroup {
 public:
  struct Part {
    std::string name;
    std::vector<int64_t> shape;
  };
  // `whole`: so small that every engine keeps it whole on every rank (adapters).
  ParamGroup(std::string name, bool trainable, bool whole = false)
      : name_(std::move(name)), trainable_(trainable), whole_(whole) {}
  ParamGroup(const ParamGroup&) = delete;

  // Appends parts end to end, aligned to 64 bytes. The weight's shape is [sum of rows, cols], or [sum] for vectors.
  Weight add(const std::vector<Part>& parts, bool decay);

  const std::string& name() const { return name_; }
  bool trainable() const { return trainable_; }
  bool whole() const { return whole_; }
  int64_t numel() const { return numel_; }                // with alignment gaps
  int64_t parameters() const { return parameters_; }      // without
  const std::vector<ParamSpec>& params() const { return params_; }

  // Set by the engine, at least numel() long. compute: in the compute type. grad: fp32, undefined when frozen.
  at::Tensor compute, grad;

  void begin_update();    // nothing was added yet
  // Zero-fills what nothing was added to, gaps and the buffer's rest included: the gradient is whole.
  void finish_update();

 private:
  friend class Weight;
  struct Slot { int64_t offset, numel; bool written; };
  std::string name_;
  bool trainable_, whole_;
  int64_t numel_ = 0, parameters_ = 0;
  std::vector<ParamSpec> params_;
  std::vector<Slot> slots_;
  std::vector<std::pair<int64_t, int64_t>> gaps_;  // offset, count
};

}  // namespace aitraining::ops
