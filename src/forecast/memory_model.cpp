#include "memory_model.h"

#include <algorithm>

namespace aitraining::forecast {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kChunkElements = 12 * kMiB;  // of logits, as src/ops/head.cpp takes them

// Measured on x86_64 with LibTorch 2.11: the resident memory of a run on a model of a few
// kilobytes, and what the tokenizer adds for each entry of its vocabulary.
constexpr int64_t kCpuProcess = 140 * kMiB;
constexpr int64_t kTokenizerEntry = 640;
// Context, kernels, workspaces of the matrix library and NCCL's channels: an assumption.
constexpr int64_t kGpuProcess = 900 * kMiB;
// Buffers of the passes come and go in sizes that do not fit each other's gaps: what the C
// library's allocator, and the GPU's caching one, hold beyond what is in use.
constexpr double kCpuAllocator = 1.5, kGpuAllocator = 1.15;

int64_t part(int64_t elements, int ranks) {
  return (elements + ranks - 1) / ranks;
}

bool zero2(const RunSetup& s) {
  return s.engine == "zero2";
}
bool zero3(const RunSetup& s) {
  return s.engine == "zero3";
}
// Adapters are whole on every rank whatever the engine.
bool sharded(const RunSetup& s) {
  return (zero2(s) || zero3(s)) && !s.peft;
}
int64_t owned(const RunSetup& s) {
  return sharded(s) ? part(s.trained(), s.ranks) : s.trained();
}

int64_t weights(const RunSetup& s) {
  const int64_t element = s.element();
  int64_t bytes =
      s.offload_param ? 0 : element * (zero3(s) ? part(s.frozen(), s.ranks) : s.frozen());
  // What is computed with: masters themselves in fp32, unless these lie elsewhere.
  const bool apart = s.bf16 || s.offload_optimizer;
  if (apart || zero2(s)) {
    const bool on_host = s.offload_param && zero3(s) && !s.peft;
    if (!on_host) bytes += element * (zero3(s) ? owned(s) : s.trained());
  }
  const bool same = zero2(s) && !apart && !s.peft;  // a part of the whole weights is the master
  if (!s.offload_optimizer && !same) bytes += 4 * owned(s);
  return bytes;
}

int64_t gradients(const RunSetup& s) {
  const bool shards_too = s.deterministic && s.ranks > 1 && !sharded(s);
  return 4 * owned(s) + (shards_too ? 4 * part(s.trained(), s.ranks) : 0);
}

// The buffer pool of a sharded engine: at its highest the largest unit's gradient and the pieces
// received for it (or its weights) lie beside what the neighbouring blocks need.
int64_t buffers(const RunSetup& s) {
  const int64_t unit = s.shape.largest_unit(), block = s.shape.block, element = s.element();
  int64_t bytes = 0;
  if (zero3(s)) {
    const int64_t budget = 12 * unit;
    bytes = element * (unit + 2 * block);
    if (!s.peft) bytes += 4 * (unit + 3 * block) + (element < 4 ? 4 * unit : 0);
    bytes = std::min(bytes, budget);
    // From the last unit back.
    int64_t resident =
        s.resident_units > 0 ? s.shape.head + (s.shape.tied ? s.shape.embedding : 0) : 0;
    resident += std::clamp<int64_t>(s.resident_units - 1, 0, s.shape.layers) * block;
    bytes += element * resident;
  } else if (zero2(s) && !s.peft) {
    bytes = 8 * unit;
  }
  return bytes;
}

struct Columns {
  int64_t kept, passing;
};

// Per token: what a block's backward pass needs of its forward pass (rotated q, k and v,
// attention's output, the middle residual, both gates), and what is there besides while it runs.
Columns block_columns(const RunSetup& s) {
  const Shape& m = s.shape;
  Columns c{m.query + m.key_value + m.query + m.hidden + 2 * m.intermediate, 0};
  if (s.peft && m.layers > 0) c.kept += m.lora_r * m.adapted_layers / m.layers;
  c.passing = 2 * m.hidden + (s.peft && s.lora_dropout ? 4 : 3) * m.intermediate;
  return c;
}

double allocator(const RunSetup& s) {
  return s.cuda ? kGpuAllocator : kCpuAllocator;
}

int64_t activations(const RunSetup& s) {
  const Shape& m = s.shape;
  const Columns block = block_columns(s);
  const int64_t inputs = (m.layers + 1) * m.hidden, head = 5 * m.hidden;
  const int64_t blocks = (s.recompute ? block.kept : m.layers * block.kept) + block.passing;
  return static_cast<int64_t>(
      allocator(s) * static_cast<double>(s.tokens * s.element() * (inputs + blocks + head)));
}

int64_t logits(const RunSetup& s) {
  const Shape& m = s.shape;
  const int64_t rows =
      std::min(s.tokens, std::max<int64_t>(1, kChunkElements / std::max<int64_t>(1, m.vocab)));
  // In 16 bit: scores, their fp32 copy, and the gradient rounded again.
  int64_t bytes = rows * m.vocab * (s.bf16 ? 8 : 4);
  if (s.bf16 && !s.peft) bytes += 2 * m.vocab * m.hidden;  // a product before it is added in fp32
  return bytes;
}

// What goes out of a rank when `elements` are gathered, or reduced and scattered, over all ranks.
double share(double bytes, int ranks) {
  return bytes * (ranks - 1) / ranks;
}

}  // namespace

RankMemory memory_per_rank(const RunSetup& s) {
  RankMemory memory;
  memory.weights = weights(s);
  memory.gradients = gradients(s);
  memory.optimizer = s.adamw && !s.offload_optimizer ? 8 * owned(s) : 0;
  memory.activations = activations(s);
  memory.logits = logits(s);
  memory.buffers = buffers(s);
  memory.process = s.cuda ? kGpuProcess : kCpuProcess + kTokenizerEntry * s.shape.vocab;
  return memory;
}

int64_t traffic_per_update(const RunSetup& s) {
  if (s.ranks < 2) return 0;
  const Shape& m = s.shape;
  const auto micro = static_cast<double>(s.accumulation);
  const double element = static_cast<double>(s.element());
  // Replicated gradients: all-reduced once.
  double bytes = sharded(s) ? 0 : 2 * share(4.0 * static_cast<double>(s.trained()), s.ranks);
  if (zero3(s)) {
    // Forward gathers each unit (a tied table twice: for the embedding and for the head), backward
    // the blocks but the last.
    const int64_t forward = m.base() + (m.tied ? m.embedding : 0),
                  backward = (m.layers - 1) * m.block;
    bytes += micro * share(element * static_cast<double>(forward + backward), s.ranks);
  }
  if (sharded(s)) bytes += micro * share(4.0 * static_cast<double>(s.trained()), s.ranks);
  if (zero2(s) && sharded(s)) bytes += share(element * static_cast<double>(s.trained()), s.ranks);
  return static_cast<int64_t>(bytes);
}

}  // namespace aitraining::forecast
