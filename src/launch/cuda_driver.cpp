#include "cuda_driver.h"

#include <fmt/format.h>

#include "aitraining/core/strings.h"
#include "shared_library.h"

namespace aitraining::launch {
namespace {

constexpr int kTextSize = 96;
constexpr int kMajor = 75, kMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*

struct Uuid {
  unsigned char bytes[16];
};

std::string uuid_text(const Uuid& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid.bytes[i]);
  }
  return text;
}

Gpu describe(const SharedLibrary& library, int device) {
  Gpu gpu;
  char text[kTextSize] = "";
  int (*name)(char*, int, int) = nullptr;
  gpu.name =
      library.find(name, "cuDeviceGetName") && name(text, kTextSize, device) == 0 ? text : "GPU";
  Uuid uuid{};
  int (*get_uuid)(Uuid*, int) = nullptr;
  if (library.find(get_uuid, "cuDeviceGetUuid_v2") && get_uuid(&uuid, device) == 0)
    gpu.uuid = uuid_text(uuid);
  int (*bus)(char*, int, int) = nullptr;
  if (library.find(bus, "cuDeviceGetPCIBusId") && bus(text, kTextSize, device) == 0)
    gpu.pci_bus = to_lower(text);
  size_t bytes = 0;
  int (*memory)(size_t*, int) = nullptr;
  if (library.find(memory, "cuDeviceTotalMem_v2") && memory(&bytes, device) == 0)
    gpu.memory_total = bytes;
  int (*attribute)(int*, int, int) = nullptr;
  int major = 0, minor = 0;
  if (library.find(attribute, "cuDeviceGetAttribute") && attribute(&major, kMajor, device) == 0 &&
      attribute(&minor, kMinor, device) == 0)
    gpu.compute_capability = fmt::format("{}.{}", major, minor);
  return gpu;
}

}  // namespace

DriverView ask_cuda_driver() {
  DriverView view;
  const SharedLibrary library("libcuda.so.1");
  int (*init)(unsigned) = nullptr;
  int (*version)(int*) = nullptr;
  int (*count)(int*) = nullptr;
  if (!library.find(init, "cuInit") || !library.find(version, "cuDriverGetVersion") ||
      !library.find(count, "cuDeviceGetCount"))
    return view;
  int number = 0;
  if (version(&number) == 0) view.version = fmt::format("{}.{}", number / 1000, number % 1000 / 10);
  if (init(0) != 0 || count(&number) != 0) return view;
  for (int device = 0; device < number; ++device) view.gpus.push_back(describe(library, device));
  return view;
}

}  // namespace aitraining::launch
