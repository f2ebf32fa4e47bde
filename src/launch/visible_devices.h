#pragma once
#include <string>
#include <vector>

namespace aitraining::launch {

// What CUDA_VISIBLE_DEVICES can name.
struct DeviceUuids {
  std::string uuid;                   // "GPU-..."
  std::vector<std::string> slices{};  // "MIG-..."
};
struct ChosenDevice {
  int device = 0;
  int slice = -1;  // -1: the GPU itself
  bool operator==(const ChosenDevice&) const = default;
};

// Which of the machine's GPUs CUDA would show, by CUDA's own rules. `variable` is
// CUDA_VISIBLE_DEVICES (null: unset): indices, or beginnings of UUIDs, or names of MIG slices. The
// first entry that names no device ends the list; a device named twice makes it empty. One MIG
// slice is all that a process gets, and then no other GPU.
std::vector<ChosenDevice> visible_devices(const char* variable,
                                          const std::vector<DeviceUuids>& devices);

// Usable share of the processor according to a cgroup's "cpu.max" ("200000 100000" is 2); 0: no
// limit.
double cpu_limit(const std::string& cpu_max);

}  // namespace aitraining::launch
