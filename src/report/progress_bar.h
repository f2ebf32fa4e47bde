#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace aitraining::report {

struct BarState {
  int64_t step = 0, total = 0;
  double loss = 0, learning_rate = 0, tokens_per_second = 0;
  uint64_t memory_bytes = 0;
  std::optional<double> seconds_left{};
};

// One line of ASCII of at most `columns` characters. What does not fit is left out, the least
// wanted first: memory, learning rate, tokens/s, bar, time left, loss.
std::string render_bar(const BarState& state, int columns);

// Time left, from the pace since the first update seen: what was spent before it (loading,
// compiling) does not count, nor do updates of an earlier run that this one resumed.
class Pace {
 public:
  void start(double now);
  void observe(int64_t step, double now);
  std::optional<double> seconds_left(int64_t total) const;

 private:
  double start_ = 0, first_at_ = 0, last_at_ = 0;
  int64_t first_step_ = -1, last_step_ = -1;
};

}  // namespace aitraining::report
