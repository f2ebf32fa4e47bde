#include "signal_gate.h"

#include <sys/signalfd.h>

#include <cerrno>
#include <cstring>

#include "aitraining/core/error.h"

namespace aitraining::launch {

namespace {

constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGHUP};

bool is_ignored(int number) {
  struct sigaction action {};
  ::sigaction(number, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

// Only what is allowed in a signal handler.
void end_process(int number) {
  constexpr char kMessage[] = "\n[INTERRUPTED] Training cancelled by user.\n";
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1);
  ::_exit(128 + number);
}

}  // namespace

void exit_on_signals() {
  struct sigaction action {};
  action.sa_handler = end_process;
  for (int number : kEndingSignals) {
    if (!is_ignored(number)) ::sigaction(number, &action, nullptr);
  }
}

SignalGate::SignalGate() {
  sigset_t taken;
  sigemptyset(&taken);
  for (int number : kEndingSignals) {
    if (!is_ignored(number)) sigaddset(&taken, number);
  }
  ::sigprocmask(SIG_BLOCK, &taken, &previous_);
  descriptor_ = FileDescriptor(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor_.valid())
    throw EnvironmentError("cannot watch signals: {}", std::strerror(errno));
}

SignalGate::~SignalGate() {
  ::sigprocmask(SIG_SETMASK, &previous_, nullptr);
}

int SignalGate::take() {
  signalfd_siginfo info{};
  return ::read(descriptor_.get(), &info, sizeof(info)) == sizeof(info)
             ? static_cast<int>(info.ssi_signo)
             : 0;
}

}  // namespace aitraining::launch
