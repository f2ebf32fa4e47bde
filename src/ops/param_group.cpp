#include "aitraining/ops/param_group.h"

#include "aitraining/core/error.h"

namespace aitraining::ops {
namespace {

constexpr int64_t kAlignment = 32;  // elements: 64 bytes also in 16-bit types

int64_t product(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

}  // namespace

Weight ParamGroup::add(const std::vector<Part>& parts, bool decay) {
  AIT_CHECK(!parts.empty(), "weight without parts in {}", name_);
  const int64_t begin = numel_;
  std::vector<int64_t> shape = parts.front().shape;
  shape[0] = 0;
  for (const Part& part : parts) {
    const int64_t n = product(part.shape);
    params_.push_back({part.name, part.shape, numel_, n, decay});
    shape[0] += part.shape[0];
    numel_ += n;
    parameters_ += n;
  }
  slots_.push_back({begin, numel_ - begin, false});
  const int64_t end = numel_;
  numel_ = (numel_ + kAlignment - 1) / kAlignment * kAlignment;
  if (numel_ > end) gaps_.emplace_back(end, numel_ - end);
  return Weight(this, static_cast<int>(slots_.size()) - 1, begin, shape);
}

void ParamGroup::begin_update() {
  for (Slot& slot : slots_) slot.written = false;
}

void ParamGroup::finish_update() {
  for (Slot& slot : slots_) {
    if (!slot.written) grad.narrow(0, slot.offset, slot.numel).zero_();
    slot.written = true;
  }
  for (const auto& [offset, count] : gaps_) grad.narrow(0, offset, count).zero_();
  if (grad.numel() > numel_) grad.narrow(0, numel_, grad.numel() - numel_).zero_();
}

bool Weight::trainable() const { return group_ != nullptr && group_->trainable(); }

at::Tensor Weight::value() const {
  AIT_CHECK(group_->compute.defined(), "{} is used while it is not gathered", group_->name());
  const auto& slot = group_->slots_[slot_];
  return group_->compute.narrow(0, offset_, slot.numel).view(shape_);
}

void Weight::add_product(const at::Tensor& a, const at::Tensor& b) const {
  auto& slot = group_->slots_[slot_];
  auto view = group_->grad.narrow(0, offset_, slot.numel).view(shape_);
  if (a.scalar_type() == view.scalar_type()) {
    at::addmm_out(view, view, a, b, slot.written ? 1 : 0, 1);
  } else if (slot.written) {
    view.add_(at::mm(a, b));
  } else {
    view.copy_(at::mm(a, b));
  }
  slot.written = true;
}

void Weight::add(const at::Tensor& value) const {
  auto& slot = group_->slots_[slot_];
  auto view = group_->grad.narrow(0, offset_, slot.numel).view(shape_);
  if (slot.written) {
    view.add_(value);
  } else {
    view.copy_(value);
  }
  slot.written = true;
}

at::Tensor Weight::gradient() const {
  auto& slot = group_->slots_[slot_];
  auto view = group_->grad.narrow(0, offset_, slot.numel).view(shape_);
  if (!slot.written) view.zero_();
  slot.written = true;
  return view;
}

}  // namespace aitraining::ops
