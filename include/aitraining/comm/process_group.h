#pragma once
// Collectives between the ranks of one run, over c10d: NCCL on GPUs, Gloo on CPUs, nothing with one rank. Every rank
// calls the same collectives in the same order. A collective that fails throws PeerLostError naming rank and operation.
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "aitraining/core/error.h"

namespace aitraining::comm {

// Another rank ended or cannot be reached: this rank is not the one to blame.
struct PeerLostError : Error {
  explicit PeerLostError(const std::string& message) : Error(ErrorKind::environment, message) {}
};

struct GroupOptions {
  std::string backend = "single";  // single, gloo, nccl
  int rank = 0, world_size = 1, local_rank = 0;
  std::string master_addr = "127.0.0.1";
  int master_port = 0;
  int store_listen_fd = -1;        // rank 0: socket that the launcher bound already; -1: bind master_port
  bool store_elsewhere = false;    // another process (torchrun's agent) serves the store at that address
  std::string store_prefix;        // of keys, so that a restarted run does not read an earlier one's
  std::chrono::seconds timeout{7200};             // of a collective
  std::chrono::seconds rendezvous_timeout{600};   // until all ranks are there
  int local_world_size = 1;
  // Name and value of what must be equal on all ranks; a difference ends the run with the names.
  std::vector<std::pair<std::string, std::string>> settings;
};

// A collective under way. wait() returns when the tensor may be read (on CUDA: by later work of the current stream).
class Work {
 public:
  virtual ~Work() = default;
  virtual void wait() = 0;
};

// What this rank handed to collectives so far: calls, and elements of the whole (gathered or to be reduced) tensor.
struct Traffic {
  uint64_t all_reduces = 0, all_reduced = 0;
  uint64_t all_gathers = 0, gathered = 0;
  uint64_t reduce_scatters = 0, reduced = 0;
  uint64_t bytes_sent = 0;  // to other ranks, as the algorithm at hand sends them; all-reduce counts 2 (n-1)/n
};

class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;
  int rank() const { return rank_; }
  int size() const { return size_; }

  // In place; fp32, fp64, int64, bf16. Asynchronous: the tensor belongs to the collective until wait().
  virtual std::unique_ptr<Work> all_reduce_sum_async(at::Tensor tensor) = 0;
  virtual void all_reduce_max(at::Tensor tensor) = 0;
  virtual void broadcast(at::Tensor tensor, int root) = 0;
  // Each rank's equally shaped tensor, in rank order.
  virtual std::vector<at::Tensor> all_gather(const at::Tensor& tensor) = 0;
  virtual void barrier() = 0;

  // `out` becomes the ranks' parts end to end, [size * n]; `part`: [n], equal on all ranks, may be this rank's place in
  // `out`. Asynchronous: both belong to the collective until wait().
  virtual std::unique_ptr<Work> all_gather_into_async(at::Tensor out, at::Tensor part) = 0;
  // wait() makes `out` [n] the sum over ranks of in[rank * n, (rank + 1) * n), or adds that sum to it. Asynchronous: the
  // tensors belong to the collective until wait(). `space`: as many elements of in's type as reduce_scatter_space says.
  // `ordered`: summed in rank order, the same bits whatever the transport.
  struct ReduceScatter {
    at::Tensor out, in, space;
    bool add = false, ordered = false;
  };
  virtual std::unique_ptr<Work> reduce_scatter_sum_async(ReduceScatter request) = 0;
  virtual int64_t reduce_scatter_space(int64_t in_elements, bool ordered) const = 0;
  // Sends `out` to rank `to` and receives `in` from rank `from`, equally large; waits at most `patience` for both.
  virtual void send_receive(at::Tensor out, int to, at::Tensor in, int from, std::chrono::milliseconds patience) = 0;

  const Traffic& traffic() const { return traffic_; }
  c10::Device device() const { return device_; }

  void all_reduce_sum(at::Tensor tensor) { all_reduce_sum_async(std::move(tensor))->wait(); }
  // Sums of a few host numbers over ranks, in double.
  std::vector<double> sum(std::vector<double> values);
  double max(double value);

 protected:
  ProcessGroup(int rank, int size, c10::Device device) : rank_(rank), size_(size), device_(device) {}
  int rank_, size_;
  c10::Device device_;  // where small host values travel
  Traffic traffic_;
};

std::unique_ptr<ProcessGroup> make_process_group(const GroupOptions& options);

}  // namespace aitraining::comm
