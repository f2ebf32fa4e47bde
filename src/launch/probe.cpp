// Devices without a CUDA context: the management library only counts and describes them, and is
// closed again.
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "aitraining/launch/devices.h"
#include "cuda_driver.h"
#include "host.h"
#include "nvml.h"
#include "visible_devices.h"

namespace aitraining::launch {
namespace {

using Devices = std::vector<Nvml::Device>;

// NVML counts along the PCI bus, CUDA (unless it is told to do that too) from the fastest GPU on:
// with GPUs of different kinds only the driver knows the numbers.
bool order_is_known(const Devices& devices) {
  const char* order = std::getenv("CUDA_DEVICE_ORDER");
  if (order && std::string_view(order) == "PCI_BUS_ID") return true;
  return std::ranges::all_of(devices,
                             [&](const auto& d) { return d.gpu.name == devices.front().gpu.name; });
}

Devices by_variable(const Devices& devices) {
  std::vector<DeviceUuids> uuids;
  for (const auto& device : devices) {
    uuids.push_back({device.gpu.uuid});
    for (const auto& slice : device.slices) uuids.back().slices.push_back(slice.gpu.uuid);
  }
  Devices visible;
  for (const ChosenDevice& chosen : visible_devices(std::getenv("CUDA_VISIBLE_DEVICES"), uuids)) {
    const auto& device = devices[static_cast<size_t>(chosen.device)];
    visible.push_back(chosen.slice < 0 ? device : device.slices[static_cast<size_t>(chosen.slice)]);
  }
  return visible;
}

// What NVML knows of the devices that the driver lists.
Devices by_driver(const Devices& devices) {
  Devices visible;
  for (const Gpu& gpu : ask_cuda_driver().gpus) {
    const auto known =
        std::ranges::find_if(devices, [&](const auto& d) { return d.gpu.uuid == gpu.uuid; });
    if (known != devices.end()) visible.push_back(*known);
  }
  return visible;
}

bool probe_nvml(DeviceInventory& inventory) {
  const Nvml nvml;
  if (!nvml.usable()) return false;
  inventory.driver = nvml.driver();
  inventory.cuda = nvml.cuda();
  const Devices all = nvml.devices();
  const Devices visible = order_is_known(all) ? by_variable(all) : by_driver(all);
  for (const auto& device : visible) {
    inventory.gpus.push_back(device.gpu);
    auto& row = inventory.links.emplace_back();
    for (const auto& other : visible) row.push_back(nvml.link(device, other));
  }
  return true;
}

// Containers with the compute part of the driver only have no NVML. The driver honours
// CUDA_VISIBLE_DEVICES by itself.
void probe_driver(DeviceInventory& inventory) {
  DriverView view = ask_cuda_driver();
  if (view.version.empty()) return;
  inventory.driver = "CUDA " + view.version;
  inventory.cuda = view.version;
  inventory.gpus = std::move(view.gpus);
}

}  // namespace

DeviceInventory probe_devices() {
  DeviceInventory inventory;
  if (!probe_nvml(inventory)) probe_driver(inventory);
  for (const Gpu& gpu : inventory.gpus) inventory.names.push_back(gpu.name);
  inventory.cuda_devices = static_cast<int>(inventory.gpus.size());
  inventory.cores = usable_cores();
  inventory.fast_bf16 = has_fast_bf16();
  inventory.memory_free = free_host_memory();
  return inventory;
}

}  // namespace aitraining::launch
