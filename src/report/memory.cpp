#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include <sys/resource.h>

#include "aitraining/report/records.h"

namespace aitraining::report {
namespace {

// A "Name:  123 kB" line of /proc/self/status, in bytes; 0 when the kernel does not tell it.
uint64_t status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    uint64_t kilobytes = 0;
    if (word == name && status >> kilobytes) return kilobytes * 1024;
    status.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

uint64_t usage_peak_bytes() {
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? static_cast<uint64_t>(usage.ru_maxrss) * 1024 : 0;
}

}  // namespace

uint64_t resident_bytes() {
  const uint64_t now = status_bytes("VmRSS:");
  return now != 0 ? now : usage_peak_bytes();
}

uint64_t peak_resident_bytes() {
  // ru_maxrss survives exec, so a small program started by a big one would report the big one's
  // peak.
  const uint64_t peak = status_bytes("VmHWM:");
  return peak != 0 ? peak : std::max(usage_peak_bytes(), resident_bytes());
}

}  // namespace aitraining::report
