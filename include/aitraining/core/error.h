#pragma once
// The four kinds of failure. They are never mixed: what the user can mend in the command or the
// data, what the machine refused, numbers that stopped being finite, and our own mistakes.
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace aitraining {

enum class ErrorKind { user, environment, numeric, bug };

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }
  // Exit code of the process that ends with this error: 2 for user errors (found before work), 1
  // otherwise.
  int exit_code() const { return kind_ == ErrorKind::user ? 2 : 1; }

 private:
  ErrorKind kind_;
};

// Bad flag, key, value, file or row. The message names file, line, key, value and what to do.
struct UserError : Error {
  template <class... A>
  explicit UserError(fmt::format_string<A...> f, A&&... a)
      : Error(ErrorKind::user, fmt::format(f, std::forward<A>(a)...)) {}
};
// I/O, memory, network, devices. The message carries the system's own text.
struct EnvironmentError : Error {
  template <class... A>
  explicit EnvironmentError(fmt::format_string<A...> f, A&&... a)
      : Error(ErrorKind::environment, fmt::format(f, std::forward<A>(a)...)) {}
};
// Loss, gradient or weight that is not finite.
struct NumericError : Error {
  template <class... A>
  explicit NumericError(fmt::format_string<A...> f, A&&... a)
      : Error(ErrorKind::numeric, fmt::format(f, std::forward<A>(a)...)) {}
};
struct BugError : Error {
  template <class... A>
  explicit BugError(fmt::format_string<A...> f, A&&... a)
      : Error(ErrorKind::bug, fmt::format(f, std::forward<A>(a)...)) {}
};

}  // namespace aitraining

// A condition that only our own mistake can break.
#define AIT_CHECK(condition, ...)                                                           \
  do {                                                                                      \
    if (!(condition))                                                                       \
      throw ::aitraining::BugError("[bug] {}:{}: {} does not hold. {}", __FILE__, __LINE__, \
                                   #condition, ::fmt::format(__VA_ARGS__));                 \
  } while (false)
