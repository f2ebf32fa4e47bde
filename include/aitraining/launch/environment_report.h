#pragma once
// What a report of a fault needs: versions, devices, limits. Nothing is loaded and no device is
// held.
#include <string>

#include <nlohmann/json.hpp>

#include "aitraining/launch/devices.h"

namespace aitraining::launch {

// `version` of this program; `accelerate_config`: accelerate's configuration file, empty: its
// default one. UserError when a named one is not there. Values of variables that hold secrets are
// ***.
nlohmann::ordered_json describe_environment(const std::string& version,
                                            const DeviceInventory& devices,
                                            const std::string& accelerate_config = "");
// At most 50 lines, the first naming `accelerate env`.
std::string environment_text(const nlohmann::ordered_json& report);

}  // namespace aitraining::launch
