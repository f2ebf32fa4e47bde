#pragma once
// What a trainer minimises. An objective knows labels and their log-probabilities, never engines or ranks. Losses are
// (sum, weight) pairs: they add up over micro-batches and ranks, and are divided once.
#include <cstdint>
#include <memory>

#include "aitraining/ops/batch.h"

namespace aitraining::objective {

class Objective {
 public:
  virtual ~Objective() = default;
  // Share of the normaliser that a micro-batch with this many labels brings.
  virtual double weight(int64_t labels) const = 0;
  // Called before the passes of an update, when the weight of all its micro-batches on all ranks is known: sets what
  // the head multiplies gradients by.
  virtual void prepare(ops::Batch& batch, double total_weight) const = 0;
  // The loss of the summed -log p over labels of total weight `total_weight`.
  virtual double loss(double sum, double total_weight) const = 0;
};

// Supervised fine-tuning: mean of -log p over all trained tokens of the update. It does not depend on how rows are
// spread over micro-batches, accumulation and ranks.
std::unique_ptr<Objective> make_sft_objective();

}  // namespace aitraining::objective
