#include "visible_devices.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>

#include "aitraining/core/strings.h"

namespace aitraining::launch {
namespace {

std::optional<int> by_index(const std::string& entry, int count) {
  int index = -1;
  const auto [end, code] = std::from_chars(entry.data(), entry.data() + entry.size(), index);
  if (code != std::errc() || end != entry.data() + entry.size() || index < 0 || index >= count)
    return std::nullopt;
  return index;
}

std::optional<int> by_uuid(const std::string& entry, const std::vector<std::string>& uuids) {
  std::optional<int> found;
  for (size_t i = 0; i < uuids.size(); ++i) {
    if (!uuids[i].starts_with(entry)) continue;
    if (found) return std::nullopt;  // the beginning fits two devices
    found = static_cast<int>(i);
  }
  return found;
}

}  // namespace

std::vector<int> visible_devices(const char* variable, const std::vector<std::string>& uuids) {
  std::vector<int> devices;
  if (!variable) {
    for (size_t i = 0; i < uuids.size(); ++i) devices.push_back(static_cast<int>(i));
    return devices;
  }
  std::istringstream entries(variable);
  for (std::string part; std::getline(entries, part, ',');) {
    const std::string entry(trim(part));
    if (entry.starts_with("MIG-")) {
      devices.push_back(-1);
      continue;
    }
    const auto device = entry.starts_with("GPU-") ? by_uuid(entry, uuids)
                                                  : by_index(entry, static_cast<int>(uuids.size()));
    if (!device || std::ranges::count(devices, *device)) break;
    devices.push_back(*device);
  }
  return devices;
}

double cpu_limit(const std::string& cpu_max) {
  std::istringstream words(cpu_max);
  double quota = 0, period = 0;
  if (!(words >> quota >> period) || quota <= 0 || period <= 0) return 0;  // "max 100000"
  return quota / period;
}

}  // namespace aitraining::launch
