// Devices without a CUDA context: the management library only counts and names them, and is closed
// again.
#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "aitraining/launch/launch.h"
#include "visible_devices.h"

namespace aitraining::launch {
namespace {

class Library {
 public:
  explicit Library(const char* name) : handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {}
  ~Library() {
    if (handle_) dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  explicit operator bool() const { return handle_ != nullptr; }
  template <class Function>
  bool find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(dlsym(handle_, name));
    return function != nullptr;
  }

 private:
  void* handle_;
};

constexpr unsigned kTextSize = 96;

// The part of NVML that is used; the types are those of its public interface.
struct Nvml {
  Library library{"libnvidia-ml.so.1"};
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, void**) = nullptr;
  int (*name)(void*, char*, unsigned) = nullptr;
  int (*uuid)(void*, char*, unsigned) = nullptr;
  int (*driver)(char*, unsigned) = nullptr;

  bool usable() {
    return library && library.find(init, "nvmlInit_v2") && library.find(shutdown, "nvmlShutdown") &&
           library.find(count, "nvmlDeviceGetCount_v2") &&
           library.find(handle, "nvmlDeviceGetHandleByIndex_v2") &&
           library.find(name, "nvmlDeviceGetName") && library.find(uuid, "nvmlDeviceGetUUID") &&
           library.find(driver, "nvmlSystemGetDriverVersion") && init() == 0;
  }
};

bool probe_nvml(DeviceInventory& inventory) {
  Nvml nvml;
  if (!nvml.usable()) return false;
  char text[kTextSize] = "";
  if (nvml.driver(text, kTextSize) == 0) inventory.driver = text;
  unsigned count = 0;
  nvml.count(&count);
  std::vector<std::string> names, uuids;
  for (unsigned i = 0; i < count; ++i) {
    void* device = nullptr;
    if (nvml.handle(i, &device) != 0) continue;
    names.emplace_back(nvml.name(device, text, kTextSize) == 0 ? text : "GPU");
    uuids.emplace_back(nvml.uuid(device, text, kTextSize) == 0 ? text : "");
  }
  nvml.shutdown();
  for (int index : visible_devices(std::getenv("CUDA_VISIBLE_DEVICES"), uuids)) {
    inventory.names.push_back(index < 0 ? "MIG slice" : names[static_cast<size_t>(index)]);
  }
  inventory.cuda_devices = static_cast<int>(inventory.names.size());
  return true;
}

// Containers with the compute part of the driver only have no NVML. cuInit makes no context and
// honours CUDA_VISIBLE_DEVICES by itself.
void probe_driver(DeviceInventory& inventory) {
  const Library library("libcuda.so.1");
  int (*init)(unsigned) = nullptr;
  int (*version)(int*) = nullptr;
  int (*count)(int*) = nullptr;
  int (*name)(char*, int, int) = nullptr;
  if (!library || !library.find(init, "cuInit") || !library.find(version, "cuDriverGetVersion") ||
      !library.find(count, "cuDeviceGetCount") || !library.find(name, "cuDeviceGetName")) {
    return;
  }
  int number = 0;
  if (version(&number) == 0)
    inventory.driver = fmt::format("CUDA {}.{}", number / 1000, number % 1000 / 10);
  if (init(0) != 0 || count(&number) != 0) return;
  for (int i = 0; i < number; ++i) {
    char text[kTextSize] = "";
    inventory.names.emplace_back(name(text, kTextSize, i) == 0 ? text : "GPU");
  }
  inventory.cuda_devices = number;
}

int cores_by_affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max<int>(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

// The tightest cpu.max from this process's cgroup (version 2) up to the root.
double cores_by_cgroup() {
  std::ifstream membership("/proc/self/cgroup");
  std::filesystem::path group;
  for (std::string line; std::getline(membership, line);) {
    if (line.starts_with("0::")) group = line.substr(3);
  }
  double limit = 0;
  for (group = group.relative_path();; group = group.parent_path()) {
    std::ifstream file("/sys/fs/cgroup" / group / "cpu.max");
    std::string content;
    std::getline(file, content);
    const double here = cpu_limit(content);
    if (here > 0 && (limit == 0 || here < limit)) limit = here;
    if (group.empty()) return limit;
  }
}

bool has_fast_bf16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") || __builtin_cpu_supports("amx-bf16");
#else
  return false;
#endif
}

}  // namespace

DeviceInventory probe_devices() {
  DeviceInventory inventory;
  if (!probe_nvml(inventory)) probe_driver(inventory);
  inventory.cores = cores_by_affinity();
  const double limit = cores_by_cgroup();
  if (limit > 0)
    inventory.cores = std::clamp(static_cast<int>(std::floor(limit)), 1, inventory.cores);
  inventory.fast_bf16 = has_fast_bf16();
  return inventory;
}

}  // namespace aitraining::launch
