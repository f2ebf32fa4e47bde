#pragma once
#include <csignal>

#include "file_descriptor.h"

namespace aitraining::launch {

// While it lives SIGINT, SIGTERM and SIGHUP arrive at a descriptor instead of ending the process. A
// signal that was ignored before (nohup, a background job) stays ignored.
class SignalGate {
 public:
  SignalGate();
  ~SignalGate();
  SignalGate(const SignalGate&) = delete;
  SignalGate& operator=(const SignalGate&) = delete;
  int descriptor() const { return descriptor_.get(); }
  const sigset_t& previous_mask() const { return previous_; }
  int take();  // the next signal that has arrived; 0: none

 private:
  sigset_t previous_{};
  FileDescriptor descriptor_;
};

// For a run without child processes: these signals say so on standard error and end the process at
// once, with exit code 128 + number. Results are written atomically, so nothing half-done remains.
// The training library may put its own handlers in their place.
void exit_on_signals();

}  // namespace aitraining::launch
