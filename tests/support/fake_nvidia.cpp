// A driver and management library with the GPUs that the environment describes; each test process
// has its own.
//   FAKE_GPUS   name|uuid|total MiB|free MiB|capability|bus|MIG uuids, ...;  next GPU
//   FAKE_LINKS  X,NV2,SYS;NV2,X,PHB;...      FAKE_CUDA_ORDER  1,0: CUDA's numbers along the bus
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

std::vector<std::string> parts(const std::string& text, char separator) {
  std::vector<std::string> all;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) all.push_back(part);
  return all;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

struct Fake {
  std::string name, uuid, bus, capability;
  unsigned long long total = 0, free = 0;
  std::vector<Fake> slices;
};

std::vector<Fake> read_gpus() {
  std::vector<Fake> gpus;
  for (const std::string& text : parts(variable("FAKE_GPUS"), ';')) {
    auto fields = parts(text, '|');
    fields.resize(7);
    Fake gpu{fields[0],
             fields[1],
             fields[5],
             fields[4],
             std::strtoull(fields[2].c_str(), nullptr, 10) << 20,
             std::strtoull(fields[3].c_str(), nullptr, 10) << 20,
             {}};
    for (const std::string& uuid : parts(fields[6], ','))
      gpu.slices.push_back({gpu.name + " MIG 1g", uuid, "", "", gpu.total / 8, gpu.total / 8, {}});
    gpus.push_back(gpu);
  }
  return gpus;
}

std::vector<Fake>& gpus() {
  static std::vector<Fake> all;
  return all;
}

int copy(const std::string& text, char* out, unsigned size) {
  std::snprintf(out, size, "%s", text.c_str());
  return 0;
}

struct Memory {
  unsigned long long total, free, used;
};
struct Pci {
  char legacy[16];
  unsigned numbers[5];
  char bus[32];
};
struct Uuid {
  unsigned char bytes[16];
};

#ifdef FAKE_NVML
Fake& of(void* handle) {
  return *static_cast<Fake*>(handle);
}

std::string link(void* a, void* b) {
  const auto index = [](void* handle) { return static_cast<size_t>(&of(handle) - gpus().data()); };
  const auto rows = parts(variable("FAKE_LINKS"), ';');
  return index(a) < rows.size() ? parts(rows[index(a)], ',').at(index(b)) : "";
}

}  // namespace

EXPORTED int nvmlInit_v2() {
  gpus() = read_gpus();
  return 0;
}
EXPORTED int nvmlShutdown() {
  return 0;
}
EXPORTED int nvmlSystemGetDriverVersion(char* out, unsigned size) {
  return copy("580.95.05", out, size);
}
EXPORTED int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 13000;
  return 0;
}
EXPORTED int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(gpus().size());
  return 0;
}
EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  *handle = &gpus().at(index);
  return 0;
}
EXPORTED int nvmlDeviceGetName(void* h, char* out, unsigned size) {
  return copy(of(h).name, out, size);
}
EXPORTED int nvmlDeviceGetUUID(void* h, char* out, unsigned size) {
  return copy(of(h).uuid, out, size);
}
EXPORTED int nvmlDeviceGetMemoryInfo(void* h, Memory* memory) {
  *memory = {of(h).total, of(h).free, of(h).total - of(h).free};
  return 0;
}
EXPORTED int nvmlDeviceGetCudaComputeCapability(void* h, int* major, int* minor) {
  return std::sscanf(of(h).capability.c_str(), "%d.%d", major, minor) == 2 ? 0 : 3;
}
EXPORTED int nvmlDeviceGetPciInfo_v3(void* h, Pci* pci) {
  if (of(h).bus.empty()) return 3;
  return copy("0000" + of(h).bus, pci->bus, sizeof(pci->bus));
}
EXPORTED int nvmlDeviceGetMigMode(void* h, unsigned* current, unsigned* pending) {
  *current = *pending = of(h).slices.empty() ? 0 : 1;
  return 0;
}
EXPORTED int nvmlDeviceGetMaxMigDeviceCount(void*, unsigned* count) {
  *count = 7;
  return 0;
}
EXPORTED int nvmlDeviceGetMigDeviceHandleByIndex(void* h, unsigned index, void** handle) {
  if (index >= of(h).slices.size()) return 6;
  *handle = &of(h).slices[index];
  return 0;
}
EXPORTED int nvmlDeviceGetP2PStatus(void* a, void* b, int, unsigned* status) {
  *status = link(a, b).starts_with("NV") ? 0 : 1;
  return 0;
}
EXPORTED int nvmlDeviceGetNvLinkState(void* h, unsigned number, unsigned* on) {
  unsigned links = 0;
  for (Fake& other : gpus()) {
    const std::string text = &other == &of(h) ? "" : link(h, &other);
    if (text.starts_with("NV")) links = static_cast<unsigned>(std::atoi(text.c_str() + 2));
  }
  *on = number < links ? 1 : 0;
  return number < 18 ? 0 : 2;
}
EXPORTED int nvmlDeviceGetTopologyCommonAncestor(void* a, void* b, int* level) {
  static const std::map<std::string, int> levels{
      {"PIX", 10}, {"PXB", 20}, {"PHB", 30}, {"NODE", 40}, {"SYS", 50}};
  const auto found = levels.find(link(a, b));
  if (found == levels.end()) return 3;
  *level = found->second;
  return 0;
}
#else
std::vector<int> cuda_order() {
  std::vector<int> order;
  for (const std::string& part : parts(variable("FAKE_CUDA_ORDER"), ','))
    order.push_back(std::atoi(part.c_str()));
  for (size_t i = order.size(); i < gpus().size(); ++i) order.push_back(static_cast<int>(i));
  return order;
}

const Fake& cuda_device(int device) {
  return gpus()[static_cast<size_t>(cuda_order()[static_cast<size_t>(device)])];
}

}  // namespace

EXPORTED int cuInit(unsigned) {
  gpus() = read_gpus();
  return gpus().empty() ? 100 : 0;
}
EXPORTED int cuDriverGetVersion(int* version) {
  *version = 12080;
  return 0;
}
EXPORTED int cuDeviceGetCount(int* count) {
  *count = static_cast<int>(gpus().size());
  return 0;
}
EXPORTED int cuDeviceGetName(char* out, int size, int device) {
  return copy(cuda_device(device).name, out, static_cast<unsigned>(size));
}
EXPORTED int cuDeviceGetPCIBusId(char* out, int size, int device) {
  return copy(cuda_device(device).bus, out, static_cast<unsigned>(size));
}
EXPORTED int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  *bytes = cuda_device(device).total;
  return 0;
}
EXPORTED int cuDeviceGetAttribute(int* value, int attribute, int device) {
  int major = 0, minor = 0;
  std::sscanf(cuda_device(device).capability.c_str(), "%d.%d", &major, &minor);
  *value = attribute == 75 ? major : minor;
  return 0;
}
EXPORTED int cuDeviceGetUuid_v2(Uuid* uuid, int device) {
  std::string hex = cuda_device(device).uuid.substr(4);
  std::erase(hex, '-');
  for (size_t i = 0; i < 16; ++i)
    uuid->bytes[i] =
        static_cast<unsigned char>(std::strtoul(hex.substr(2 * i, 2).c_str(), nullptr, 16));
  return 0;
}
#endif
