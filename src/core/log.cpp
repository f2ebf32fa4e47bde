#include "aitraining/core/log.h"

#include <atomic>
#include <cstdio>
#include <mutex>

#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>

#include "aitraining/core/error.h"

namespace aitraining::log {
namespace {

std::atomic<void (*)(bool)> g_terminal_hook{nullptr};

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::debug:
      return spdlog::level::debug;
    case Level::info:
      return spdlog::level::info;
    case Level::warn:
      return spdlog::level::warn;
    case Level::error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

// Standard error without time stamps: a person reads along. The sink's own lock keeps a progress
// bar's line whole.
class TerminalSink : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const char* label = message.level == spdlog::level::warn  ? "warning: "
                        : message.level == spdlog::level::err ? "error: "
                                                              : "";
    auto* hook = g_terminal_hook.load();
    if (hook) hook(true);
    std::string line(label);
    line.append(message.payload.data(), message.payload.size());
    line.push_back('\n');
    std::fwrite(line.data(), 1, line.size(), stderr);
    std::fflush(stderr);
    if (hook) hook(false);
  }
  void flush_() override {}
};

struct State {
  std::mutex mutex;
  std::shared_ptr<spdlog::logger> logger;
  std::string prefix;
};

// Never destroyed: messages may still come from other threads while the process ends.
State& state() {
  static State& instance = *[] {
    auto* s = new State;
    s->logger = std::make_shared<spdlog::logger>("aitraining", std::make_shared<TerminalSink>());
    return s;
  }();
  return instance;
}

spdlog::sink_ptr make_file_sink(const std::string& file) {
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file, false);
    sink->set_pattern("%Y-%m-%d %H:%M:%S.%e | %-7l | %v");
    return sink;
  } catch (const spdlog::spdlog_ex& e) {
    throw EnvironmentError("cannot open the log file {}: {}", file, e.what());
  }
}

}  // namespace

void init(const Options& options) {
  std::vector<spdlog::sink_ptr> sinks;
  if (options.terminal) {
    sinks.push_back(std::make_shared<TerminalSink>());
    sinks.back()->set_level(to_spdlog(options.terminal_level));
  }
  if (!options.file.empty()) sinks.push_back(make_file_sink(options.file));
  auto logger = std::make_shared<spdlog::logger>("aitraining", sinks.begin(), sinks.end());
  logger->set_level(spdlog::level::debug);
  // A process that is killed must not take its last lines with it.
  logger->flush_on(spdlog::level::debug);
  std::lock_guard lock(state().mutex);
  state().logger = std::move(logger);
  state().prefix = options.prefix;
}

void write(Level level, const std::string& message) {
  std::shared_ptr<spdlog::logger> logger;
  std::string text;
  {
    std::lock_guard lock(state().mutex);
    logger = state().logger;
    text = state().prefix + message;
  }
  logger->log(to_spdlog(level), spdlog::string_view_t(text));
}

void set_terminal_hook(void (*hook)(bool before)) {
  g_terminal_hook.store(hook);
}

}  // namespace aitraining::log
