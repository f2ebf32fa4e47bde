#include "console_lines.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "aitraining/core/strings.h"

namespace aitraining::report {
namespace {

// A dict as Python prints it. Keys are ours and need no escaping.
class DictLine {
 public:
  DictLine& number(const char* key, const std::string& digits) { return put(key, digits); }
  DictLine& text(const char* key, const std::string& value) { return put(key, "'" + value + "'"); }
  std::string str() const { return "{" + body_ + "}"; }

 private:
  DictLine& put(const char* key, const std::string& value) {
    body_ += fmt::format("{}'{}': {}", body_.empty() ? "" : ", ", key, value);
    return *this;
  }
  std::string body_;
};

size_t columns(const std::string& utf8) {
  return static_cast<size_t>(
      std::count_if(utf8.begin(), utf8.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::string python_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string digits = fmt::format("{}", value);
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return digits;
}

std::string rounded(double value, int decimals) {
  return python_float(std::strtod(fmt::format("{:.{}f}", value, decimals).c_str(), nullptr));
}

std::string significant(double value, int digits) {
  return python_float(std::strtod(fmt::format("{:.{}e}", value, digits - 1).c_str(), nullptr));
}

std::string step_line(const StepRecord& record, double seconds_left) {
  DictLine line;
  line.number("loss", rounded(record.loss, 6))
      .number("grad_norm", significant(record.grad_norm, 7))
      .number("learning_rate", significant(record.learning_rate, 9))
      .number("epoch", rounded(record.epoch, 4))
      .number("step", std::to_string(record.step))
      .number("tokens_per_second", rounded(record.tokens_per_second, 1))
      .text("memory", human_bytes(record.memory_bytes));
  if (seconds_left >= 0) line.text("time_left", human_duration(seconds_left));
  if (record.weights_checksum) line.text("weights_checksum", *record.weights_checksum);
  return line.str();
}

std::string eval_line(const EvalRecord& record) {
  DictLine line;
  if (record.loss) {
    line.number("eval_loss", rounded(*record.loss, 6));
  } else {
    line.text("eval_note", "no tokens");
  }
  line.number("eval_runtime", rounded(record.seconds, 4))
      .number("epoch", rounded(record.epoch, 4))
      .number("step", std::to_string(record.step))
      .number("eval_tokens", std::to_string(record.num_tokens));
  return line.str();
}

std::string end_line(const EndRecord& record) {
  return DictLine()
      .number("train_runtime", rounded(record.seconds, 4))
      .number("train_samples_per_second", rounded(record.samples_per_second, 3))
      .number("train_steps_per_second", rounded(record.steps_per_second, 3))
      .number("train_loss", rounded(record.train_loss, 6))
      .number("epoch", rounded(record.epoch, 4))
      .number("step", std::to_string(record.steps))
      .number("tokens_per_second", rounded(record.tokens_per_second, 1))
      .text("peak_memory", human_bytes(record.peak_memory_bytes))
      .number("seconds_to_first_step", rounded(record.seconds_to_first_step, 2))
      .str();
}

std::string summary_block(const std::vector<std::pair<std::string, std::string>>& lines) {
  size_t width = 0;
  for (const auto& [label, value] : lines) width = std::max(width, columns(label));
  std::string block;
  for (const auto& [label, value] : lines) {
    std::string shown = value;
    for (size_t at = shown.find('\n'); at != std::string::npos; at = shown.find('\n', at + 1)) {
      shown.insert(at + 1, width + 2, ' ');
    }
    block += label + std::string(width + 2 - columns(label), ' ') + shown + "\n";
  }
  return block;
}

}  // namespace aitraining::report
