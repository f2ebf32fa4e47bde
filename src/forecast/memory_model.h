#pragma once
// What a rank holds, without running one. docs/plan.md tells where each term and constant comes
// from.
#include <cstdint>
#include <string>

#include "shape.h"

namespace aitraining::forecast {

struct RunSetup {
  Shape shape;
  std::string engine = "single";  // single, ddp, zero2, zero3
  int ranks = 1;
  bool cuda = false;
  bool bf16 = false;  // computes in 16 bit over fp32 masters
  bool peft = false;
  bool recompute = true;
  bool adamw = true;  // two moments; sgd has none
  bool lora_dropout = false;
  bool deterministic = false;
  bool offload_optimizer = false, offload_param = false;  // to the host, from a GPU
  int64_t resident_units = 0;
  int64_t tokens = 0;  // of one micro-batch of one rank
  int64_t accumulation = 1;

  int64_t trained() const { return peft ? shape.adapters : shape.base(); }
  int64_t frozen() const { return peft ? shape.base() : 0; }
  int64_t element() const { return bf16 ? 2 : 4; }
};

// Bytes of one rank: on a GPU those of its memory, else of host memory.
struct RankMemory {
  int64_t weights = 0, gradients = 0, optimizer = 0;
  int64_t activations =
      0;  // inputs of all blocks, and what one block (or, without recomputation, each) keeps
  int64_t logits = 0;   // the head's chunk
  int64_t buffers = 0;  // gathered units, gradients on their way
  int64_t process = 0;  // libraries, tokenizer, device context
  int64_t total() const {
    return weights + gradients + optimizer + activations + logits + buffers + process;
  }
};
RankMemory memory_per_rank(const RunSetup& setup);

// Bytes that a rank sends in one update.
int64_t traffic_per_update(const RunSetup& setup);

}  // namespace aitraining::forecast
