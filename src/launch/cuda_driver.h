#pragma once
#include <string>
#include <vector>

#include "aitraining/launch/devices.h"

namespace aitraining::launch {

// The visible GPUs as the driver itself lists them, in CUDA's order. It is initialised, which makes
// no context. Empty version: there is no driver.
struct DriverView {
  std::string version;  // highest CUDA version, "13.0"
  std::vector<Gpu> gpus;
};
DriverView ask_cuda_driver();

}  // namespace aitraining::launch
