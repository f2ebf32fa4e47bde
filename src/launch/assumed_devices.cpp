#include <cctype>
#include <cmath>
#include <cstdlib>
#include <optional>

#include <fmt/format.h>

#include "aitraining/core/error.h"
#include "aitraining/core/strings.h"
#include "aitraining/launch/devices.h"
#include "visible_devices.h"

namespace aitraining::launch {
namespace {

constexpr long kMostDevices = 1024;

std::optional<double> unit_bytes(const std::string& unit) {
  if (unit == "gib" || unit == "g" || unit.empty()) return 1024.0 * 1024 * 1024;
  if (unit == "gb") return 1e9;
  if (unit == "mib") return 1024.0 * 1024;
  if (unit == "tib") return 1024.0 * 1024 * 1024 * 1024;
  return std::nullopt;
}

std::optional<uint64_t> memory_size(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const auto unit = unit_bytes(to_lower(trim(end)));
  if (end == text.c_str() || !std::isfinite(number) || number <= 0 || number > 1e6 || !unit)
    return std::nullopt;
  return static_cast<uint64_t>(number * *unit);
}

// "8" and "8x80GiB"; nullopt: neither.
struct Assumed {
  int count;
  uint64_t memory;
};
std::optional<Assumed> parse(const std::string& text) {
  if (text.empty() || !std::isdigit(static_cast<unsigned char>(text[0]))) return std::nullopt;
  char* end = nullptr;
  const long count = std::strtol(text.c_str(), &end, 10);
  const std::string rest(trim(end));
  if (count > kMostDevices) return std::nullopt;
  if (rest.empty()) return Assumed{static_cast<int>(count), 0};
  if (rest[0] != 'x' && rest[0] != 'X') return std::nullopt;
  const auto memory = memory_size(rest.substr(1));
  if (!memory) return std::nullopt;
  return Assumed{static_cast<int>(count), *memory};
}

}  // namespace

DeviceInventory assume_devices(const std::string& text, const DeviceInventory& here) {
  const auto assumed = parse(std::string(trim(text)));
  if (!assumed) {
    throw UserError(
        "--assume-devices {}: a number of GPUs is needed, or with the memory of each: 8, 8x80GiB, "
        "2x24GB",
        text);
  }
  std::vector<DeviceUuids> uuids;
  for (int i = 0; i < assumed->count; ++i) uuids.push_back({fmt::format("GPU-assumed-{}", i)});
  const auto visible = visible_devices(std::getenv("CUDA_VISIBLE_DEVICES"), uuids);
  DeviceInventory inventory = here;
  inventory.gpus.clear();
  inventory.links.clear();
  for (const ChosenDevice& chosen : visible) {
    Gpu gpu;
    gpu.name = "assumed GPU";
    gpu.uuid = uuids[static_cast<size_t>(chosen.device)].uuid;
    gpu.memory_total = gpu.memory_free = assumed->memory;
    inventory.gpus.push_back(gpu);
  }
  inventory.cuda_devices = static_cast<int>(visible.size());
  inventory.names.assign(visible.size(), "assumed GPU");
  inventory.driver = assumed->count > 0 ? "assumed" : "";
  inventory.cuda.clear();
  return inventory;
}

std::string slow_link_warning(const Topology& links, int count) {
  const size_t used = std::min(links.size(), static_cast<size_t>(std::max(0, count)));
  for (size_t i = 0; i < used; ++i) {
    for (size_t j = i + 1; j < used; ++j) {
      const std::string& link = links[i][j];
      if (link != "NODE" && link != "SYS") continue;
      return fmt::format(
          "GPUs {} and {} are not on the same PCIe root complex and have no NVLink; expect slow "
          "gradient sync. Choose others with CUDA_VISIBLE_DEVICES.",
          i, j);
    }
  }
  return "";
}

}  // namespace aitraining::launch
