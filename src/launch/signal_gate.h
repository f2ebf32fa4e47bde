#pragma once
#include <csignal>

#include "file_descriptor.h"

namespace aitraining::launch {

// While it lives SIGINT, SIGTERM and SIGHUP arrive at a descriptor instead of ending the process. A signal that was
// ignored before (nohup, a background job) stays ignored.
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

}  // namespace aitraining::launch
