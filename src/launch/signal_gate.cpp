#include "signal_gate.h"

#include <sys/signalfd.h>

#include <cerrno>
#include <cstring>

#include "aitraining/core/error.h"

namespace aitraining::launch {

SignalGate::SignalGate() {
  sigset_t taken;
  sigemptyset(&taken);
  for (int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    ::sigaction(number, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&taken, number);
  }
  ::sigprocmask(SIG_BLOCK, &taken, &previous_);
  descriptor_ = FileDescriptor(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor_.valid()) throw EnvironmentError("cannot watch signals: {}", std::strerror(errno));
}

SignalGate::~SignalGate() { ::sigprocmask(SIG_SETMASK, &previous_, nullptr); }

int SignalGate::take() {
  signalfd_siginfo info{};
  return ::read(descriptor_.get(), &info, sizeof(info)) == sizeof(info) ? static_cast<int>(info.ssi_signo) : 0;
}

}  // namespace aitraining::launch
