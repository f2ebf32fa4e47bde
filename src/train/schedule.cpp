#include "aitraining/train/schedule.h"

#include <algorithm>
#include <cmath>

#include "aitraining/core/error.h"

namespace aitraining::train {

ScheduleKind parse_schedule(const std::string& name) {
  if (name == "linear") return ScheduleKind::linear;
  if (name == "cosine") return ScheduleKind::cosine;
  if (name == "constant") return ScheduleKind::constant;
  if (name == "constant_with_warmup") return ScheduleKind::constant_with_warmup;
  throw UserError("--scheduler {}: choose linear, cosine, constant or constant_with_warmup.", name);
}

int64_t warmup_updates(double ratio, int64_t total) {
  // 0.1 * 30 is a hair above 3 in binary: without the guard the ceiling would be 4.
  const double exact = ratio * static_cast<double>(total);
  const double rounded = std::round(exact);
  return static_cast<int64_t>(std::abs(exact - rounded) < 1e-9 ? rounded : std::ceil(exact));
}

double learning_rate(ScheduleKind kind, double peak, int64_t update, int64_t total, int64_t warmup) {
  const auto done = static_cast<double>(update - 1);
  if (kind == ScheduleKind::constant) return peak;
  if (update - 1 < warmup) return peak * done / static_cast<double>(std::max<int64_t>(1, warmup));
  if (kind == ScheduleKind::constant_with_warmup) return peak;
  const auto span = static_cast<double>(std::max<int64_t>(1, total - warmup));
  const double progress = (done - static_cast<double>(warmup)) / span;
  if (kind == ScheduleKind::cosine) return peak * std::max(0.0, 0.5 * (1.0 + std::cos(M_PI * progress)));
  return peak * std::max(0.0, 1.0 - progress);
}

int64_t automatic_logging_steps(int64_t rows, int64_t batch_size) {
  return std::clamp<int64_t>(static_cast<int64_t>(0.2 * static_cast<double>(rows) / static_cast<double>(batch_size)), 1,
                             25);
}

}  // namespace aitraining::train
