#pragma once
// A look at the connections before work: a slow or dead one is named now, and not after hours of a slow run.
#include <string>
#include <vector>

#include "aitraining/comm/process_group.h"

namespace aitraining::comm {

struct Link {
  int from = 0, to = 0;
  bool same_machine = true;
  double seconds = 0;           // of a small message, the best of a few
  double bytes_per_second = 0;  // of a large one
};

struct Preflight {
  std::vector<Link> links;                                  // every ordered pair; on every rank
  std::vector<std::pair<uint64_t, double>> all_reduce;      // bytes, seconds: three sizes
  std::string line() const;                                 // "all-reduce 4.0 KiB 0.2 ms, ...; same machine: ..."
  // Pairs at less than a quarter of the median speed of their class, worst first, as sentences.
  std::vector<std::string> slow_pairs() const;
};

// Collective. PeerLostError naming the pair when a message does not arrive within `patience`.
Preflight check_connections(ProcessGroup& group, int local_world_size, std::chrono::milliseconds patience);

}  // namespace aitraining::comm
