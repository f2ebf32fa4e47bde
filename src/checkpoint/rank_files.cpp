#include "rank_files.h"

#include <cmath>

#include "aitraining/core/error.h"
#include "convert.h"

namespace aitraining::checkpoint {
namespace {

constexpr int64_t kPiece = int64_t{1} << 22;  // elements looked at together

bool finite(const format::TensorStore& store, const format::TensorInfo& info) {
  auto space = at::empty({std::min(kPiece, info.elements())}, at::kFloat);
  for (int64_t begin = 0; begin < info.elements(); begin += kPiece) {
    const int64_t count = std::min(kPiece, info.elements() - begin);
    store.read_f32(info, begin, count, space.data_ptr<float>());
    store.release_pages();
    // In fp64 no sum of finite fp32 numbers overflows, and one that is not finite spoils it.
    if (!std::isfinite(space.narrow(0, 0, count).sum(at::kDouble).item<double>())) return false;
  }
  return true;
}

}  // namespace

RankFiles::RankFiles(const SavingRanks& ranks, std::vector<Plan> plans) : ranks_(ranks), plans_(std::move(plans)) {
  using Mode = format::SafetensorsWriter::Mode;
  auto open = [&](Mode mode) {
    for (const Plan& plan : plans_) {
      writers_.push_back(
          std::make_unique<format::SafetensorsWriter>(plan.path, plan.tensors, std::map<std::string, std::string>{}, mode));
      for (const auto& tensor : plan.tensors) places_[tensor.name] = {writers_.back().get(), tensor.dtype};
    }
  };
  if (ranks_.first()) open(Mode::create);
  ranks_.group.barrier();
  if (!ranks_.first() && ranks_.shared_folder) open(Mode::join);
}

void RankFiles::write(const std::string& name, int64_t first, const at::Tensor& value) {
  const Place& place = places_.at(name);
  const auto saved = to_saved(value, place.dtype);
  place.writer->write(name, first, saved.numel(), saved.const_data_ptr());
}

void RankFiles::finish() {
  for (auto& writer : writers_) writer->finish_part();
  check_written();
  for (const Plan& plan : plans_) {
    const auto bad = static_cast<int64_t>(ranks_.group.max(static_cast<double>(first_bad_tensor(plan))));
    if (bad < 0) continue;
    throw NumericError("[save] {}: {} holds numbers that are not finite (NaN or infinity): the model is broken and is "
                       "not saved. Earlier checkpoints are untouched.",
                       plan.path.string(), plan.tensors[static_cast<size_t>(bad)].name);
  }
}

void RankFiles::check_written() const {
  std::vector<double> written(plans_.size());
  for (size_t i = 0; i < writers_.size(); ++i) written[i] = static_cast<double>(writers_[i]->written_bytes());
  written = ranks_.group.sum(written);
  for (size_t i = 0; i < writers_.size(); ++i) {
    AIT_CHECK(written[i] == static_cast<double>(writers_[i]->data_bytes()), "{}: {} of {} bytes were written",
              plans_[i].path.string(), written[i], writers_[i]->data_bytes());
  }
}

// Reads the file again, every rank its share of the tensors. Index of one that is not finite, or -1.
int64_t RankFiles::first_bad_tensor(const Plan& plan) const {
  if (!ranks_.shared_folder && !ranks_.first()) return -1;
  const auto store = format::open_safetensors(plan.path);
  AIT_CHECK(store->tensors().size() == plan.tensors.size(), "{} holds {} tensors instead of {}", plan.path.string(),
            store->tensors().size(), plan.tensors.size());
  int64_t bad = -1;
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    const auto& planned = plan.tensors[i];
    const auto found = store->tensors().find(planned.name);
    AIT_CHECK(found != store->tensors().end() && found->second.shape == planned.shape &&
                  found->second.dtype == planned.dtype,
              "{}: {} is not as it was planned", plan.path.string(), planned.name);
    const bool mine = !ranks_.shared_folder || static_cast<int>(i) % ranks_.group.size() == ranks_.group.rank();
    if (mine && !finite(*store, found->second)) bad = static_cast<int64_t>(i);
  }
  return bad;
}

}  // namespace aitraining::checkpoint
