#pragma once
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "aitraining/comm/process_group.h"

namespace aitraining::comm {

// Finds the other ranks: connects to the store, claims this rank's number, waits until all are there, and compares what
// each was told. EnvironmentError or UserError, on every rank, that names who is missing, doubled or different.
c10::intrusive_ptr<c10d::Store> meet(const GroupOptions& options);

// This machine's address on the way to `host`, as text; empty when there is no way.
std::string local_address_towards(const std::string& host, int port);

}  // namespace aitraining::comm
