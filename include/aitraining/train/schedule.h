#pragma once
#include <cstdint>
#include <string>

namespace aitraining::train {

enum class ScheduleKind { linear, cosine, constant, constant_with_warmup };
ScheduleKind parse_schedule(const std::string& name);

// ceil(ratio * total): Hugging Face's rule.
int64_t warmup_updates(double ratio, int64_t total);

// Learning rate of update `update` (from 1) of `total`. With warm-up the first update has rate 0, as transformers'
// get_*_schedule_with_warmup functions have it.
double learning_rate(ScheduleKind kind, double peak, int64_t update, int64_t total, int64_t warmup);

// `logging_steps` -1: a fifth of the rows' batches, between 1 and 25.
int64_t automatic_logging_steps(int64_t rows, int64_t batch_size);

}  // namespace aitraining::train
