// The wheel ships c10d's Gloo class but not Gloo's headers; Debian's libgloo-dev has them. No Gloo object is touched
// here and libgloo is not linked: the class's own factory makes the device inside LibTorch.
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <cstdlib>

#include "backends.h"
#include "rendezvous.h"

namespace aitraining::comm {

c10::intrusive_ptr<c10d::Backend> make_gloo_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                    const GroupOptions& options) {
  auto gloo = c10d::ProcessGroupGloo::Options::create(options.timeout);
  // The interface on the way to machine 0: loopback on one machine, so that nothing else is opened; and never what the
  // host's own name happens to resolve to. GLOO_SOCKET_IFNAME overrules it, as in PyTorch.
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  if (interface != nullptr && *interface != 0) {
    gloo->devices.push_back(c10d::ProcessGroupGloo::createDeviceForInterface(interface));
  } else {
    const std::string address = local_address_towards(options.master_addr, options.master_port);
    gloo->devices.push_back(address.empty() ? c10d::ProcessGroupGloo::createDefaultDevice()
                                            : c10d::ProcessGroupGloo::createDeviceForHostname(address));
  }
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, options.rank, options.world_size, gloo);
}

}  // namespace aitraining::comm
