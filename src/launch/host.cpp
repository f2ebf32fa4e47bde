#include "host.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "aitraining/launch/devices.h"
#include "visible_devices.h"

namespace aitraining::launch {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

int cores_by_affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max<int>(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

// Calls `visit` with the folder of this process's cgroup (version 2) and of every one above it.
template <class Visit>
void visit_cgroups(Visit visit) {
  std::ifstream membership("/proc/self/cgroup");
  fs::path group;
  for (std::string line; std::getline(membership, line);) {
    if (line.starts_with("0::")) group = line.substr(3);
  }
  for (group = group.relative_path();; group = group.parent_path()) {
    visit("/sys/fs/cgroup" / group);
    if (group.empty()) return;
  }
}

double cores_by_cgroup() {
  double limit = 0;
  visit_cgroups([&](const fs::path& folder) {
    std::ifstream file(folder / "cpu.max");
    std::string content;
    std::getline(file, content);
    const double here = cpu_limit(content);
    if (here > 0 && (limit == 0 || here < limit)) limit = here;
  });
  return limit;
}

uint64_t memory_by_cgroup() {
  uint64_t left = kNoLimit;
  visit_cgroups([&](const fs::path& folder) {
    uint64_t limit = 0, used = 0;
    if (!(std::ifstream(folder / "memory.max") >> limit)) return;
    std::ifstream(folder / "memory.current") >> used;
    left = std::min(left, limit - std::min(limit, used));
  });
  return left;
}

// `counted_in`: the line of /proc/self/status with what counts against the limit already.
uint64_t memory_by_ulimit(__rlimit_resource resource, const std::string& counted_in) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kNoLimit;
  return limit.rlim_cur - std::min<uint64_t>(limit.rlim_cur, proc_bytes("/proc/self/status", counted_in));
}

}  // namespace

int usable_cores() {
  const int cores = cores_by_affinity();
  const double limit = cores_by_cgroup();
  return limit > 0 ? std::clamp(static_cast<int>(std::floor(limit)), 1, cores) : cores;
}

bool has_fast_bf16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") || __builtin_cpu_supports("amx-bf16");
#else
  return false;
#endif
}

uint64_t proc_bytes(const std::string& file, const std::string& key) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with(key)) return std::stoull(line.substr(key.size())) * 1024;
  }
  return 0;
}

uint64_t free_host_memory() {
  uint64_t free = proc_bytes("/proc/meminfo", "MemAvailable:");
  if (free == 0) free = kNoLimit;
  free = std::min(
      {free, memory_by_cgroup(), memory_by_ulimit(RLIMIT_DATA, "VmData:"),
       memory_by_ulimit(RLIMIT_AS, "VmSize:")});
  return free == kNoLimit ? 0 : free;
}

}  // namespace aitraining::launch
