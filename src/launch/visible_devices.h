#pragma once
#include <string>
#include <vector>

namespace aitraining::launch {

// Which of the machine's GPUs CUDA would show, by CUDA's own rules: `variable` is
// CUDA_VISIBLE_DEVICES (null: unset), entries are indices, or beginnings of UUIDs; the first entry
// that names no device, or one named before, ends the list. -1 stands for a MIG slice, which only
// the driver can look up.
std::vector<int> visible_devices(const char* variable, const std::vector<std::string>& uuids);

// Usable share of the processor according to a cgroup's "cpu.max" ("200000 100000" is 2); 0: no
// limit.
double cpu_limit(const std::string& cpu_max);

}  // namespace aitraining::launch
