#pragma once
// Which rows go where: pure functions of (rows, seed, epoch, batch, accumulation, world size).
#include <cstdint>
#include <vector>

#include "aitraining/data/batch.h"

namespace aitraining::data {

// torch.randperm(n) of a CPU generator seeded with `seed`: the same order as Python's RandomSampler draws.
std::vector<int64_t> random_permutation(int64_t n, uint64_t seed);

// Best-fit-decreasing packing into windows of `capacity` tokens; rows longer than that are the caller's mistake.
// The result does not depend on ranks. Rows keep their order inside a pack.
std::vector<Item> pack_rows(const TokenizedRows& rows, int64_t capacity);
std::vector<Item> single_rows(const TokenizedRows& rows);

struct BatchShape {
  int64_t batch_size = 1;     // items per micro-batch and rank
  int64_t accumulation = 1;   // micro-batches per update and rank
  int64_t world_size = 1;
};

// ceil(ceil(items / (batch x ranks)) / accumulation): the last short window of an epoch is an update.
int64_t updates_per_epoch(int64_t items, const BatchShape& shape);

// Order of items in one epoch: random_permutation(items, seed + epoch).
class EpochPlan {
 public:
  EpochPlan(int64_t items, uint64_t seed, int64_t epoch, const BatchShape& shape, bool shuffle);
  int64_t updates() const;
  // Items of micro-batch `micro` (0 .. micro_batches(update)-1) of `rank` in `update`; empty when this rank has none left.
  // Batches are dealt as Python's sampler deals them: batch b of the epoch goes to rank b % world_size.
  std::vector<int64_t> items(int64_t update, int64_t micro, int64_t rank) const;
  int64_t micro_batches(int64_t update) const;  // the same on every rank

 private:
  std::vector<int64_t> order_;
  BatchShape shape_;
};

}  // namespace aitraining::data
