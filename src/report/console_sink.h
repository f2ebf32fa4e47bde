#pragma once
// The console sink with everything that a test wants to choose.
#include <cstdio>
#include <functional>
#include <mutex>

#include "aitraining/report/records.h"
#include "progress_bar.h"

namespace aitraining::report {

struct ConsoleOptions {
  std::FILE* out = stdout;
  bool bar = false;                 // a progress bar instead of one line per logging interval
  std::function<int()> columns;     // width of the terminal, asked at every redraw
  std::function<double()> seconds;  // a clock that only goes forward
};

// At most one console sink with a bar lives at a time: it owns the log's terminal hook.
class ConsoleSink : public Sink {
 public:
  explicit ConsoleSink(ConsoleOptions options);
  ~ConsoleSink() override;
  void on_start(const RunSummary& summary) override;
  void on_update(int64_t step, const StepRecord& running) override;
  void on_step(const StepRecord& record) override;
  void on_eval(const EvalRecord& record) override;
  void on_end(const EndRecord& record) override;

 private:
  static void around_log_line(bool before);
  void take(const StepRecord& record, int64_t step);
  void print(const std::string& text);  // above the bar
  void draw();
  void clear();

  ConsoleOptions options_;
  std::mutex mutex_;  // log lines may come from other threads
  Pace pace_;
  BarState state_;
  bool running_ = false, shown_ = false;
  double drawn_at_ = -1;
};

}  // namespace aitraining::report
