#pragma once
#include "aitraining/forecast/forecast.h"
#include "memory_model.h"

namespace aitraining::forecast {

// The run as the memory model sees it; `tokens` of the longest row.
RunSetup setup_of(const config::TrainingParams& params, const launch::LaunchPlan& plan,
                  const model::ModelConfig& model, int64_t tokens_per_row);

// Changes that each fit into `capacity`, cheapest first: those that keep the numbers, then those
// that do not, then several at once.
std::vector<Remedy> remedies(const config::TrainingParams& params, const launch::LaunchPlan& plan,
                             const model::ModelConfig& model, int64_t tokens_per_row,
                             int64_t capacity);

}  // namespace aitraining::forecast
