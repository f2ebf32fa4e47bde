#include "nvml.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "aitraining/core/strings.h"

namespace aitraining::launch {
namespace {

constexpr unsigned kTextSize = 96;

// nvmlPciInfo_t
struct PciInfo {
  char legacy_bus_id[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
// nvmlMemory_t
struct Memory {
  unsigned long long total, free, used;
};
// nvmlGpuTopologyLevel_t
constexpr std::pair<int, const char*> kLevels[] = {{0, "PIX"},  {10, "PIX"},  {20, "PXB"},
                                                   {30, "PHB"}, {40, "NODE"}, {50, "SYS"}};
constexpr int kP2pNvlink = 2;  // NVML_P2P_CAPS_INDEX_NVLINK
constexpr unsigned kMostNvlinks = 18;

// Calls a function of the library; false when it is not there or fails. Older drivers lack some.
template <class... Parameters, class... Arguments>
bool call(const SharedLibrary& library, const char* name, int (*)(Parameters...),
          Arguments... arguments) {
  int (*function)(Parameters...) = nullptr;
  return library.find(function, name) && function(arguments...) == 0;
}
using TextGetter = int (*)(void*, char*, unsigned);

std::string first_line(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// "00000000:18:00.0" -> "0000:18:00.0", as the kernel writes it.
std::string kernel_bus_id(const std::string& id) {
  const size_t colon = id.find(':');
  return to_lower(colon > 4 && colon != std::string::npos ? id.substr(colon - 4) : id);
}

void add_locality(Gpu& gpu) {
  const auto folder = std::filesystem::path("/sys/bus/pci/devices") / gpu.pci_bus;
  const std::string node = first_line(folder / "numa_node");
  if (!node.empty()) gpu.numa_node = std::atoi(node.c_str());
  gpu.cores = first_line(folder / "local_cpulist");
}

}  // namespace

Nvml::Nvml() {
  int (*init)() = nullptr;
  usable_ =
      library_.find(init, "nvmlInit_v2") && library_.find(shutdown_, "nvmlShutdown") && init() == 0;
}

Nvml::~Nvml() {
  if (usable_) shutdown_();
}

std::string Nvml::driver() const {
  char text[kTextSize] = "";
  using Getter = int (*)(char*, unsigned);
  call(library_, "nvmlSystemGetDriverVersion", Getter{}, text, kTextSize);
  return text;
}

std::string Nvml::cuda() const {
  int version = 0;
  using Getter = int (*)(int*);
  if (!call(library_, "nvmlSystemGetCudaDriverVersion_v2", Getter{}, &version)) return "";
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

Nvml::Device Nvml::describe(void* handle) const {
  Device device;
  device.handle = handle;
  Gpu& gpu = device.gpu;
  char text[kTextSize] = "";
  gpu.name =
      call(library_, "nvmlDeviceGetName", TextGetter{}, handle, text, kTextSize) ? text : "GPU";
  if (call(library_, "nvmlDeviceGetUUID", TextGetter{}, handle, text, kTextSize)) gpu.uuid = text;
  Memory memory{};
  using MemoryGetter = int (*)(void*, Memory*);
  if (call(library_, "nvmlDeviceGetMemoryInfo", MemoryGetter{}, handle, &memory)) {
    gpu.memory_total = memory.total;
    gpu.memory_free = memory.free;
  }
  int major = 0, minor = 0;
  using CapabilityGetter = int (*)(void*, int*, int*);
  if (call(library_, "nvmlDeviceGetCudaComputeCapability", CapabilityGetter{}, handle, &major,
           &minor))
    gpu.compute_capability = fmt::format("{}.{}", major, minor);
  PciInfo pci{};
  using PciGetter = int (*)(void*, PciInfo*);
  if (call(library_, "nvmlDeviceGetPciInfo_v3", PciGetter{}, handle, &pci)) {
    gpu.pci_bus = kernel_bus_id(pci.bus_id);
    add_locality(gpu);
  }
  return device;
}

void Nvml::add_slices(Device& device) const {
  unsigned current = 0, pending = 0, most = 0;
  using ModeGetter = int (*)(void*, unsigned*, unsigned*);
  using CountGetter = int (*)(void*, unsigned*);
  using HandleGetter = int (*)(void*, unsigned, void**);
  if (!call(library_, "nvmlDeviceGetMigMode", ModeGetter{}, device.handle, &current, &pending) ||
      current == 0 ||
      !call(library_, "nvmlDeviceGetMaxMigDeviceCount", CountGetter{}, device.handle, &most))
    return;
  for (unsigned i = 0; i < most; ++i) {
    void* handle = nullptr;
    if (!call(library_, "nvmlDeviceGetMigDeviceHandleByIndex", HandleGetter{}, device.handle, i,
              &handle))
      continue;  // numbers may have gaps
    Device slice = describe(handle);
    const Gpu& parent = device.gpu;
    slice.gpu.mig = true;
    slice.gpu.pci_bus = parent.pci_bus;
    slice.gpu.compute_capability = parent.compute_capability;
    slice.gpu.numa_node = parent.numa_node;
    slice.gpu.cores = parent.cores;
    device.slices.push_back(std::move(slice));
  }
}

std::vector<Nvml::Device> Nvml::devices() const {
  unsigned count = 0;
  using CountGetter = int (*)(unsigned*);
  using HandleGetter = int (*)(unsigned, void**);
  call(library_, "nvmlDeviceGetCount_v2", CountGetter{}, &count);
  std::vector<Device> found;
  for (unsigned i = 0; i < count; ++i) {
    void* handle = nullptr;
    if (!call(library_, "nvmlDeviceGetHandleByIndex_v2", HandleGetter{}, i, &handle)) continue;
    found.push_back(describe(handle));
    add_slices(found.back());
  }
  return found;
}

int Nvml::active_nvlinks(void* handle) const {
  int active = 0;
  using StateGetter = int (*)(void*, unsigned, unsigned*);
  for (unsigned link = 0; link < kMostNvlinks; ++link) {
    unsigned on = 0;
    if (!call(library_, "nvmlDeviceGetNvLinkState", StateGetter{}, handle, link, &on)) break;
    active += on != 0 ? 1 : 0;
  }
  return active;
}

std::string Nvml::link(const Device& a, const Device& b) const {
  if (a.gpu.uuid == b.gpu.uuid) return "X";
  unsigned status = 1;
  using P2pGetter = int (*)(void*, void*, int, unsigned*);
  if (call(library_, "nvmlDeviceGetP2PStatus", P2pGetter{}, a.handle, b.handle, kP2pNvlink,
           &status) &&
      status == 0) {
    const int links = std::min(active_nvlinks(a.handle), active_nvlinks(b.handle));
    if (links > 0) return fmt::format("NV{}", links);
  }
  int level = -1;
  using LevelGetter = int (*)(void*, void*, int*);
  if (!call(library_, "nvmlDeviceGetTopologyCommonAncestor", LevelGetter{}, a.handle, b.handle,
            &level))
    return "";
  const auto named = std::ranges::find(kLevels, level, &std::pair<int, const char*>::first);
  return named == std::end(kLevels) ? "" : named->second;
}

}  // namespace aitraining::launch
