#pragma once
#include "aitraining/launch/launch.h"
#include "file_descriptor.h"

namespace aitraining::launch {

struct StoreSocket {
  FileDescriptor listener;
  int port = 0;
};
// Listens on the loopback address, on MASTER_PORT when the user names one, else on any free port.
// UserError when the named port is taken.
StoreSocket open_store_socket(const Cluster& cluster);

}  // namespace aitraining::launch
