#pragma once
// What the machine has to compute with. Found without a CUDA context, so that no device is held.
#include <cstdint>
#include <string>
#include <vector>

namespace aitraining::launch {

struct Gpu {
  std::string name, uuid;
  std::string pci_bus;                         // "0000:18:00.0"
  std::string compute_capability;              // "9.0"
  uint64_t memory_total = 0, memory_free = 0;  // bytes; 0: unknown
  int numa_node = -1;                          // -1: unknown, or the machine has one only
  std::string cores;  // of that node, as the kernel lists them: "0-47,96-143"
  bool mig = false;   // a MIG slice of a GPU
};

// How two GPUs reach each other, as `nvidia-smi topo` names it: X (itself), NV18 (NVLinks), PIX,
// PXB, PHB, NODE, SYS; empty: unknown.
using Topology = std::vector<std::vector<std::string>>;

struct DeviceInventory {
  int cuda_devices = 0;  // visible ones
  std::vector<std::string> names{};
  std::vector<Gpu>
      gpus{};          // the same devices, in CUDA's order; empty when only their number is known
  Topology links{};    // [gpus][gpus], or empty
  std::string driver;  // empty: no driver
  std::string cuda;    // highest CUDA version that the driver runs, "13.0"; empty: unknown
  int cores = 1;       // usable by this process (affinity and cgroup)
  bool fast_bf16 = false;    // AVX512_BF16 or AMX
  uint64_t memory_free = 0;  // host memory that this machine can still give, bytes; 0: unknown
};
DeviceInventory probe_devices();

// What /proc/meminfo, cgroup and ulimit together still allow this process, in bytes; 0: unknown.
uint64_t free_host_memory();

// A machine that is not here: "8", or with memory "8x80GiB"; "2 x 24GB". CUDA_VISIBLE_DEVICES picks
// from its devices too. UserError for anything else. `here`: what the rest is taken from.
DeviceInventory assume_devices(const std::string& text, const DeviceInventory& here);

// W1: the first two of `count` GPUs that reach each other only over the processor; empty: none.
std::string slow_link_warning(const Topology& links, int count);

}  // namespace aitraining::launch
