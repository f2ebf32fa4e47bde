#include "aitraining/data/batch.h"

#include <algorithm>
#include <numeric>

#include "aitraining/core/error.h"

namespace aitraining::data {

void TokenizedRows::add(std::span<const int32_t> ids, std::span<const uint8_t> trained, int64_t source_row) {
  AIT_CHECK(ids.size() == trained.size(), "{} ids, {} flags", ids.size(), trained.size());
  const size_t begin = trained_.size();
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  trained_.insert(trained_.end(), trained.begin(), trained.end());
  if (!trained.empty()) trained_[begin] = 0;
  offsets_.push_back(static_cast<int64_t>(ids_.size()));
  source_rows_.push_back(source_row);
  trained_counts_.push_back(std::count_if(trained_.begin() + static_cast<std::ptrdiff_t>(begin), trained_.end(),
                                          [](uint8_t flag) { return flag != 0; }));
}

std::span<const int32_t> TokenizedRows::ids(int64_t row) const {
  return {ids_.data() + offsets_[row], static_cast<size_t>(length(row))};
}

std::span<const uint8_t> TokenizedRows::trained(int64_t row) const {
  return {trained_.data() + offsets_[row], static_cast<size_t>(length(row))};
}

int64_t TokenizedRows::total_trained() const {
  return std::accumulate(trained_counts_.begin(), trained_counts_.end(), int64_t{0});
}

namespace {

void append_row(const TokenizedRows& rows, int64_t row, MicroBatch& batch) {
  const auto ids = rows.ids(row);
  const auto trained = rows.trained(row);
  const auto base = static_cast<int32_t>(batch.tokens.size());
  batch.tokens.insert(batch.tokens.end(), ids.begin(), ids.end());
  for (size_t i = 0; i < ids.size(); ++i) {
    batch.positions.push_back(static_cast<int32_t>(i));
    if (i == 0 || !trained[i]) continue;
    batch.label_row.push_back(base + static_cast<int32_t>(i) - 1);
    batch.label.push_back(ids[i]);
  }
  batch.segment_length.push_back(rows.length(row));
  batch.segment_sample.push_back(row);
}

}  // namespace

MicroBatch collate(const TokenizedRows& rows, std::span<const Item> items) {
  MicroBatch batch;
  for (const Item& item : items)
    for (const int64_t row : item) append_row(rows, row, batch);
  return batch;
}

}  // namespace aitraining::data
