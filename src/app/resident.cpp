#include "resident.h"

#include <algorithm>
#include <fstream>
#include <set>

#include <ATen/DeviceAccelerator.h>

namespace aitraining::app {
namespace {

// A line "MemAvailable:  123 kB" of /proc/meminfo.
uint64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  for (uint64_t value = 0; file >> name >> value; std::getline(file, unit)) {
    if (name == "MemAvailable:") return value * 1024;
  }
  return 0;
}

// What the cgroup still allows; the largest number where there is no limit.
uint64_t cgroup_memory() {
  uint64_t limit = UINT64_MAX, used = 0;
  std::ifstream("/sys/fs/cgroup/memory.max") >> limit;
  std::ifstream("/sys/fs/cgroup/memory.current") >> used;
  return limit == 0 ? UINT64_MAX : limit - std::min(limit, used);
}

}  // namespace

uint64_t free_memory(c10::Device device, int ranks_here) {
  if (device.is_cuda()) return at::accelerator::getMemoryInfo(device.index()).first;
  return std::min(available_memory(), cgroup_memory()) / static_cast<uint64_t>(std::max(1, ranks_here));
}

int64_t units_that_fit(const ops::Chain& chain, const engine::EngineOptions& options,
                       const launch::RankEnvironment& rank, uint64_t bytes) {
  const auto element = static_cast<uint64_t>(c10::elementSize(options.compute));
  uint64_t needed = 0, largest = 0;
  for (const auto& group : chain.groups) {
    const auto n = static_cast<uint64_t>(group->numel());
    needed += (group->trainable() ? 16 : element) * n / static_cast<uint64_t>(rank.world_size);
  }
  auto unit_elements = [&](const ops::Unit& unit) {
    uint64_t sum = 0;
    for (const auto* group : unit.groups()) sum += group->whole() ? 0 : static_cast<uint64_t>(group->numel());
    return sum;
  };
  for (const auto& unit : chain.units) largest = std::max(largest, unit_elements(*unit));
  needed += 12 * largest;
  const uint64_t usable = bytes / 5 * 4;
  int64_t fitting = 0;
  for (auto unit = chain.units.rbegin(); unit != chain.units.rend(); ++unit, ++fitting) {
    needed += unit_elements(**unit) * element;
    if (needed > usable) break;
  }
  return fitting;
}

}  // namespace aitraining::app
