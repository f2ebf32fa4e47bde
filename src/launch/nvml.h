#pragma once
// NVIDIA's management library, as far as it is used; the types are those of its public interface.
#include <optional>
#include <string>
#include <vector>

#include "aitraining/launch/devices.h"
#include "shared_library.h"

namespace aitraining::launch {

class Nvml {
 public:
  Nvml();
  ~Nvml();
  // False: the library is not there, or there is no driver that it can talk to.
  bool usable() const { return usable_; }
  std::string driver() const;
  std::string cuda() const;
  // All GPUs of the machine, in the order of the PCI bus, with their MIG slices.
  struct Device {
    Gpu gpu;
    void* handle = nullptr;
    std::vector<Device> slices;  // where the GPU is divided: what can be computed on
  };
  std::vector<Device> devices() const;
  std::string link(const Device& a, const Device& b) const;

 private:
  Device describe(void* handle) const;
  void add_slices(Device& device) const;
  int active_nvlinks(void* handle) const;

  SharedLibrary library_{"libnvidia-ml.so.1"};
  bool usable_ = false;
  int (*shutdown_)() = nullptr;
};

}  // namespace aitraining::launch
