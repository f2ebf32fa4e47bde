#include "console_sink.h"

#include <atomic>
#include <chrono>
#include <utility>

#include <sys/ioctl.h>
#include <unistd.h>

#include "aitraining/core/log.h"
#include "console_lines.h"

namespace aitraining::report {
namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr int kUsualColumns = 80;

std::atomic<ConsoleSink*> owner_of_bar{nullptr};

int terminal_columns() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualColumns;
  return size.ws_col;
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

ConsoleSink::ConsoleSink(ConsoleOptions options) : options_(std::move(options)) {
  if (!options_.bar) return;
  owner_of_bar = this;
  log::set_terminal_hook(&ConsoleSink::around_log_line);
}

ConsoleSink::~ConsoleSink() {
  if (!options_.bar) return;
  log::set_terminal_hook(nullptr);
  owner_of_bar = nullptr;
  std::lock_guard lock(mutex_);
  clear();
}

void ConsoleSink::around_log_line(bool before) {
  ConsoleSink* sink = owner_of_bar;
  if (!sink) return;
  std::lock_guard lock(sink->mutex_);
  before ? sink->clear() : sink->draw();
}

void ConsoleSink::on_start(const RunSummary& summary) {
  std::lock_guard lock(mutex_);
  state_ = BarState{.total = summary.total_updates};
  pace_.start(options_.seconds());
  print(summary_block(summary.lines));
}

void ConsoleSink::take(const StepRecord& record, int64_t step) {
  pace_.observe(step, options_.seconds());
  state_ = BarState{.step = step,
                    .total = state_.total,
                    .loss = record.loss,
                    .learning_rate = record.learning_rate,
                    .tokens_per_second = record.tokens_per_second,
                    .memory_bytes = record.memory_bytes,
                    .seconds_left = pace_.seconds_left(state_.total)};
}

void ConsoleSink::on_update(int64_t step, const StepRecord& running) {
  std::lock_guard lock(mutex_);
  take(running, step);
  if (!options_.bar) return;
  running_ = true;
  const double now = options_.seconds();
  if (drawn_at_ >= 0 && now - drawn_at_ < kRedrawSeconds && step != state_.total) return;
  draw();
}

void ConsoleSink::on_step(const StepRecord& record) {
  std::lock_guard lock(mutex_);
  take(record, record.step);
  if (options_.bar) {
    running_ = true;
    draw();
  } else {
    print(step_line(record, state_.seconds_left.value_or(-1)) + "\n");
  }
}

void ConsoleSink::on_eval(const EvalRecord& record) {
  std::lock_guard lock(mutex_);
  print(eval_line(record) + "\n");
}

void ConsoleSink::on_end(const EndRecord& record) {
  std::lock_guard lock(mutex_);
  if (shown_) std::fputs("\n", options_.out);  // the finished bar stays on the screen
  running_ = shown_ = false;
  print(end_line(record) + "\n");
}

void ConsoleSink::print(const std::string& text) {
  clear();
  std::fputs(text.c_str(), options_.out);
  std::fflush(options_.out);
  draw();
}

void ConsoleSink::draw() {
  if (!running_) return;
  // The last column stays free: a cursor there makes some terminals wrap.
  const std::string line = render_bar(state_, options_.columns() - 1);
  std::fprintf(options_.out, "\r%s\033[K", line.c_str());
  std::fflush(options_.out);
  shown_ = true;
  drawn_at_ = options_.seconds();
}

void ConsoleSink::clear() {
  if (!shown_) return;
  std::fputs("\r\033[K", options_.out);
  std::fflush(options_.out);
  shown_ = false;
}

std::unique_ptr<Sink> make_console_sink() {
  return std::make_unique<ConsoleSink>(ConsoleOptions{.out = stdout,
                                                      .bar = isatty(STDOUT_FILENO) == 1,
                                                      .columns = terminal_columns,
                                                      .seconds = steady_seconds});
}

}  // namespace aitraining::report
