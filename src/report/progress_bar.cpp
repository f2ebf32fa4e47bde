#include "progress_bar.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "aitraining/core/strings.h"

namespace aitraining::report {
namespace {

constexpr int kWidestBar = 30, kNarrowestBar = 8;

struct Field {
  std::string text;
  int wanted;  // fields with the lowest number go first
};

// In the order of printing.
std::vector<Field> fields_of(const BarState& state) {
  std::vector<Field> fields{{fmt::format("step {}/{}", state.step, state.total), 9},
                            {fmt::format("loss {:.4f}", state.loss), 5},
                            {fmt::format("lr {:.2e}", state.learning_rate), 2},
                            {fmt::format("{:.0f} tok/s", state.tokens_per_second), 3},
                            {human_bytes(state.memory_bytes), 1}};
  if (state.seconds_left) fields.push_back({human_duration(*state.seconds_left) + " left", 4});
  return fields;
}

std::string joined(const std::vector<Field>& fields) {
  std::string text;
  for (const Field& field : fields) text += (text.empty() ? "" : "  ") + field.text;
  return text;
}

std::string bar_of(double share, int width) {
  const int full = static_cast<int>(std::lround(share * width));
  return "[" + std::string(full, '#') + std::string(width - full, '.') + "]";
}

}  // namespace

std::string render_bar(const BarState& state, int columns) {
  const double share =
      state.total > 0 ? std::clamp(double(state.step) / double(state.total), 0.0, 1.0) : 0.0;
  // Rounded down: 100 % is shown when everything is done and not before.
  const std::string percent = fmt::format("{:3d}%", static_cast<int>(std::floor(share * 100)));
  std::vector<Field> fields = fields_of(state);
  std::string text = percent + " " + joined(fields);
  const auto room = [&] {
    return columns - static_cast<int>(text.size()) - 3;
  };  // two brackets and a blank
  // The bar is worth more than memory, learning rate and tokens/s, less than time left and loss.
  while (fields.size() > 1) {
    const auto least =
        std::min_element(fields.begin(), fields.end(),
                         [](const Field& a, const Field& b) { return a.wanted < b.wanted; });
    const bool fits =
        least->wanted <= 3 ? room() >= kNarrowestBar : static_cast<int>(text.size()) <= columns;
    if (fits) break;
    fields.erase(least);
    text = percent + " " + joined(fields);
  }
  if (room() >= kNarrowestBar) {
    text = percent + " " + bar_of(share, std::min(room(), kWidestBar)) + " " + joined(fields);
  }
  return text.substr(0, static_cast<size_t>(std::max(columns, 0)));
}

void Pace::start(double now) {
  start_ = now;
  first_step_ = last_step_ = -1;
}

void Pace::observe(int64_t step, double now) {
  if (step <= last_step_) return;
  if (first_step_ < 0) {
    first_step_ = step;
    first_at_ = now;
  }
  last_step_ = step;
  last_at_ = now;
}

std::optional<double> Pace::seconds_left(int64_t total) const {
  if (first_step_ < 0 || total < last_step_) return std::nullopt;
  const double per_step =
      last_step_ > first_step_
          ? (last_at_ - first_at_) / static_cast<double>(last_step_ - first_step_)
          : first_at_ - start_;
  return per_step * static_cast<double>(total - last_step_);
}

}  // namespace aitraining::report
