#pragma once
// One line per message, to the terminal (standard error) and to the rank's log file.
#include <filesystem>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace aitraining::log {

enum class Level { debug, info, warn, error };

struct Options {
  std::string file{};    // appended to; empty: no file
  bool terminal = true;  // false on ranks other than 0
  Level terminal_level = Level::info;
  std::string prefix{};  // for example "rank 1: " in front of each message
};

// Called once per process, before the first message; until then messages go to standard error.
void init(const Options& options);
void write(Level level, const std::string& message);
// Registered by a progress bar: called with true before, with false after each terminal line, so
// that the bar's line is cleared and redrawn. Null: no bar.
void set_terminal_hook(void (*hook)(bool before));

template <class... A>
void info(fmt::format_string<A...> f, A&&... a) {
  write(Level::info, fmt::format(f, std::forward<A>(a)...));
}
template <class... A>
void warn(fmt::format_string<A...> f, A&&... a) {
  write(Level::warn, fmt::format(f, std::forward<A>(a)...));
}
template <class... A>
void error(fmt::format_string<A...> f, A&&... a) {
  write(Level::error, fmt::format(f, std::forward<A>(a)...));
}
template <class... A>
void debug(fmt::format_string<A...> f, A&&... a) {
  write(Level::debug, fmt::format(f, std::forward<A>(a)...));
}

}  // namespace aitraining::log
