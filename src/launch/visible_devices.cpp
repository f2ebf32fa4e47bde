#include "visible_devices.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "aitraining/core/strings.h"

namespace aitraining::launch {
namespace {

using Devices = std::vector<DeviceUuids>;
using Chosen = std::optional<ChosenDevice>;

// As strtoul reads it: "2a" is 2; text and negative numbers name nothing.
Chosen by_index(const std::string& entry, const Devices& devices) {
  if (entry.empty() || !(std::isdigit(static_cast<unsigned char>(entry[0])) || entry[0] == '+'))
    return std::nullopt;
  const unsigned long index = std::strtoul(entry.c_str(), nullptr, 10);
  if (index >= devices.size()) return std::nullopt;
  return ChosenDevice{static_cast<int>(index)};
}

Chosen by_name(const std::string& entry, const Devices& devices) {
  Chosen found;
  bool doubtful = false;  // the beginning fits two devices
  const auto offer = [&](const std::string& uuid, ChosenDevice device) {
    if (!uuid.starts_with(entry)) return;
    doubtful = doubtful || found.has_value();
    found = device;
  };
  for (size_t d = 0; d < devices.size(); ++d) {
    offer(devices[d].uuid, {static_cast<int>(d)});
    for (size_t s = 0; s < devices[d].slices.size(); ++s)
      offer(devices[d].slices[s], {static_cast<int>(d), static_cast<int>(s)});
  }
  return doubtful ? std::nullopt : found;
}

// The kind of the first entry is the kind of all.
std::string prefix_of(const std::string& entry) {
  for (const char* prefix : {"GPU-", "MIG-"})
    if (entry.starts_with(prefix)) return prefix;
  return "";
}

std::vector<ChosenDevice> listed(const std::string& variable, const Devices& devices) {
  std::vector<ChosenDevice> chosen;
  std::istringstream entries(variable);
  std::optional<std::string> kind;
  for (std::string part; std::getline(entries, part, ',');) {
    const std::string entry(trim(part));
    const std::string prefix = prefix_of(entry);
    if (!kind) kind = prefix;
    if (prefix != *kind) break;
    const Chosen device = prefix.empty() ? by_index(entry, devices) : by_name(entry, devices);
    if (!device) break;
    if (std::ranges::count(chosen, *device)) return {};
    chosen.push_back(*device);
  }
  return chosen;
}

}  // namespace

std::vector<ChosenDevice> visible_devices(const char* variable, const Devices& devices) {
  std::vector<ChosenDevice> chosen;
  if (variable) {
    chosen = listed(variable, devices);
  } else {
    for (size_t i = 0; i < devices.size(); ++i) chosen.push_back({static_cast<int>(i)});
  }
  for (ChosenDevice device : chosen) {
    if (devices[static_cast<size_t>(device.device)].slices.empty()) continue;
    return {{device.device, std::max(0, device.slice)}};
  }
  return chosen;
}

double cpu_limit(const std::string& cpu_max) {
  std::istringstream words(cpu_max);
  double quota = 0, period = 0;
  if (!(words >> quota >> period) || quota <= 0 || period <= 0) return 0;  // "max 100000"
  return quota / period;
}

}  // namespace aitraining::launch
