#include "aitraining/data/plan.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <utility>

#include "aitraining/core/error.h"

namespace aitraining::data {

namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

std::vector<int64_t> identity(int64_t n) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  return order;
}

// Micro-steps of an epoch: how many batches the busiest rank (rank 0) gets.
int64_t steps_per_epoch(int64_t items, const BatchShape& shape) {
  return ceil_div(items, shape.batch_size * shape.world_size);
}

}  // namespace

std::vector<int64_t> random_permutation(int64_t n, uint64_t seed) {
  // From this size on, torch draws 64-bit numbers.
  constexpr int64_t kLimit = std::numeric_limits<uint32_t>::max() / 20;
  AIT_CHECK(n >= 0 && n < kLimit, "{} items", n);
  auto order = identity(n);
  std::mt19937 engine(static_cast<uint32_t>(seed & 0xffffffffu));
  for (int64_t i = 0; i + 1 < n; ++i) std::swap(order[i], order[i + engine() % (n - i)]);
  return order;
}

std::vector<Item> single_rows(const TokenizedRows& rows) {
  std::vector<Item> items(static_cast<size_t>(rows.size()));
  for (int64_t row = 0; row < rows.size(); ++row) items[row] = {row};
  return items;
}

std::vector<Item> pack_rows(const TokenizedRows& rows, int64_t capacity) {
  auto by_length = identity(rows.size());
  std::stable_sort(by_length.begin(), by_length.end(),
                   [&](int64_t a, int64_t b) { return rows.length(a) > rows.length(b); });
  std::vector<Item> packs;
  std::set<std::pair<int64_t, size_t>> room;  // tokens left, pack: the fullest pack that fits comes first
  for (const int64_t row : by_length) {
    const int64_t length = rows.length(row);
    AIT_CHECK(length <= capacity, "row {} has {} tokens, a pack holds {}", row, length, capacity);
    const auto fit = room.lower_bound({length, 0});
    if (fit == room.end()) {
      room.emplace(capacity - length, packs.size());
      packs.push_back({row});
      continue;
    }
    const auto [left, pack] = *fit;
    room.erase(fit);
    room.emplace(left - length, pack);
    packs[pack].push_back(row);
  }
  for (Item& pack : packs) std::sort(pack.begin(), pack.end());
  std::sort(packs.begin(), packs.end());
  return packs;
}

int64_t updates_per_epoch(int64_t items, const BatchShape& shape) {
  return ceil_div(steps_per_epoch(items, shape), shape.accumulation);
}

EpochPlan::EpochPlan(int64_t items, uint64_t seed, int64_t epoch, const BatchShape& shape, bool shuffle)
    : order_(shuffle ? random_permutation(items, seed + static_cast<uint64_t>(epoch)) : identity(items)),
      shape_(shape) {
  AIT_CHECK(shape.batch_size > 0 && shape.accumulation > 0 && shape.world_size > 0,
            "batch {}, accumulation {}, ranks {}", shape.batch_size, shape.accumulation, shape.world_size);
}

int64_t EpochPlan::updates() const { return updates_per_epoch(static_cast<int64_t>(order_.size()), shape_); }

int64_t EpochPlan::micro_batches(int64_t update) const {
  const int64_t steps = steps_per_epoch(static_cast<int64_t>(order_.size()), shape_);
  return std::clamp<int64_t>(steps - update * shape_.accumulation, 0, shape_.accumulation);
}

std::vector<int64_t> EpochPlan::items(int64_t update, int64_t micro, int64_t rank) const {
  if (micro >= micro_batches(update)) return {};
  const int64_t step = update * shape_.accumulation + micro;
  const int64_t batch = step * shape_.world_size + rank;
  const auto size = static_cast<int64_t>(order_.size());
  const int64_t begin = std::min(batch * shape_.batch_size, size);
  const int64_t end = std::min(begin + shape_.batch_size, size);
  return {order_.begin() + begin, order_.begin() + end};
}

}  // namespace aitraining::data
