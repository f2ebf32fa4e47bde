#include "resident.h"

#include <algorithm>

namespace aitraining::app {

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
