#pragma once
// A short training run of a small model on the ranks of a process group, and what came of it.
#include <map>
#include <string>

#include "aitraining/engine/engine.h"
#include "support/ranks.h"
#include "support/tiny_model.h"

namespace aitraining::testing {

struct TinyRun {
  model::ModelConfig config = tiny_config(true);
  bool lora = false;
  engine::EngineOptions options;
  int64_t updates = 8, micro_batches = 1, rows_per_update = 12;
  double lora_dropout = 0.1;
};

struct Outcome {
  std::vector<double> losses, norms;
  std::map<std::string, at::Tensor> weights, exp_avg, exp_avg_sq;  // rank 0 only, whole, by parameter
};

inline std::unique_ptr<model::Decoder> tiny_decoder(const TinyRun& run) {
  std::optional<model::LoraOptions> lora;
  if (run.lora) lora = model::LoraOptions{4, 8, run.lora_dropout, "all-linear"};
  return std::make_unique<model::Decoder>(run.config, lora);
}

inline void load_tiny(engine::Engine& engine) {
  engine.load(tiny_weights(), [](const ops::ParamGroup& g) { return g.name() != "adapters"; });
  engine.load(model::adapter_initialiser(3), [](const ops::ParamGroup& g) { return g.name() == "adapters"; });
}

// Rows of one update, dealt out micro-batch by micro-batch and rank by rank. Returns the mean loss.
inline double tiny_update(const TinyRun& run, const model::Decoder& decoder, engine::Engine& engine,
                          comm::ProcessGroup& group, int64_t update, double* norm) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < run.rows_per_update; ++i) all.push_back(update * run.rows_per_update + i);
  const auto labels = static_cast<double>(tiny_labels(all));
  engine.begin_update();
  double sum = 0;
  const int64_t shares = run.micro_batches * group.size();
  for (int64_t m = 0; m < run.micro_batches; ++m) {
    std::vector<int64_t> mine;
    for (size_t i = 0; i < all.size(); ++i) {
      if (static_cast<int64_t>(i) % shares == m * group.size() + group.rank()) mine.push_back(all[i]);
    }
    const bool last = m + 1 == run.micro_batches;
    if (mine.empty()) {
      engine.micro_step(nullptr, last);
      continue;
    }
    const auto batch = tiny_batch(decoder, mine, labels);
    sum += engine.micro_step(&batch, last);
  }
  const double grad_norm = engine.finish_update(1e-3).grad_norm;
  if (norm != nullptr) *norm = grad_norm;
  return group.sum({sum})[0] / labels;
}

inline Outcome train_tiny(comm::ProcessGroup& group, const TinyRun& run) {
  const auto decoder = tiny_decoder(run);
  engine::Engine engine(decoder->chain(), group, run.options);
  load_tiny(engine);
  Outcome outcome;
  for (int64_t update = 0; update < run.updates; ++update) {
    double norm = 0;
    outcome.losses.push_back(tiny_update(run, *decoder, engine, group, update, &norm));
    outcome.norms.push_back(norm);
    const double high = static_cast<double>(engine.weights_checksum().value_or(0) >> 32);
    AIT_REQUIRE(group.max(high) == high && -group.max(-high) == high);
  }
  engine.stream_state([&](const engine::StateRange& range) {
    outcome.weights[range.param->name] = range.weight.clone();
    if (!range.exp_avg.defined()) return;
    outcome.exp_avg[range.param->name] = range.exp_avg.clone();
    outcome.exp_avg_sq[range.param->name] = range.exp_avg_sq.clone();
  });
  return outcome;
}

inline bool equal_bits(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, value] : a) {
    if (!b.contains(name) || !at::equal(value, b.at(name))) return false;
  }
  return true;
}

inline double largest_difference(const std::map<std::string, at::Tensor>& a,
                                 const std::map<std::string, at::Tensor>& b) {
  AIT_REQUIRE(a.size() == b.size());
  double most = 0;
  for (const auto& [name, value] : a) most = std::max(most, (value - b.at(name)).abs().max().item<double>());
  return most;
}

inline bool close(const std::vector<double>& a, const std::vector<double>& b, double relative) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(std::abs(a[i] - b[i]) <= relative * std::abs(b[i]))) return false;
  }
  return true;
}

}  // namespace aitraining::testing
