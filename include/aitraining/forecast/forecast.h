#pragma once
// What a training would do and need: read from the model's header and the data's size, without
// LibTorch and without a rank.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "aitraining/config/config.h"
#include "aitraining/launch/launch.h"

namespace aitraining::forecast {

struct MemoryClass {
  std::string name;  // weights, gradients, optimizer, activations, logits, buffers, process
  int64_t bytes = 0;
};

// A change to the command after which it would fit.
struct Remedy {
  std::string flags;
  int64_t bytes = 0;  // per rank, then
};

// What is known of the model; absent where it is of a kind that this build cannot read.
struct ModelForecast {
  std::string architecture;
  int64_t parameters = 0, trained = 0;
  int64_t tokens_per_micro_batch = 0;  // an upper bound
  std::string length_limit;            // "1024 tokens a row (default block size)"
  std::vector<MemoryClass> memory;     // per rank
  int64_t memory_total = 0;
  std::optional<bool> fits;      // none: capacity is not known
  std::vector<Remedy> remedies;  // cheapest first; empty when it fits, or nothing helps
  int64_t final_model_bytes = 0, checkpoint_bytes = 0;
  int64_t traffic_per_update = 0;  // bytes sent by a rank
};

struct Forecast {
  config::ResolvedConfig config;
  launch::LaunchPlan plan;
  launch::DeviceInventory devices;
  std::vector<std::string> command;  // what the reference would have run
  std::optional<ModelForecast> model;
  std::string model_problem;    // why there is no `model`
  std::optional<int64_t> rows;  // of the training split
  std::string rows_problem;
  int64_t rows_per_update = 1,
          updates = 0;    // updates: of all epochs, or of 1000 rows when rows are unknown
  uint64_t capacity = 0;  // bytes that a rank may use; 0: unknown
};

Forecast make_forecast(const config::ResolvedConfig& config, const launch::DeviceInventory& devices,
                       const launch::LaunchPlan& plan);

std::string to_text(const Forecast& forecast, bool explain);
nlohmann::ordered_json to_json(const Forecast& forecast, bool explain);

}  // namespace aitraining::forecast
