// The wheel ships c10d's Gloo class but not Gloo's headers; Debian's libgloo-dev has them. No Gloo object is touched
// here and libgloo is not linked: the class's own factory makes the device inside LibTorch.
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "backends.h"

namespace aitraining::comm {

c10::intrusive_ptr<c10d::Backend> make_gloo_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                    const GroupOptions& options) {
  auto gloo = c10d::ProcessGroupGloo::Options::create(options.timeout);
  // Loopback unless the run spans machines: no other interface is opened by a run on one machine.
  const bool local = options.master_addr == "127.0.0.1" || options.master_addr == "localhost";
  gloo->devices.push_back(local ? c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
                                : c10d::ProcessGroupGloo::createDefaultDevice());
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, options.rank, options.world_size, gloo);
}

}  // namespace aitraining::comm
