// Compiled on every build, with or without a GPU. Its symbols live in libtorch_cuda, which is loaded only when the run
// uses a GPU; calls are bound lazily.
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "backends.h"

namespace aitraining::comm {

c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                    const GroupOptions& options) {
  auto nccl = c10d::ProcessGroupNCCL::Options::create();
  nccl->timeout = options.timeout;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, options.rank, options.world_size, nccl);
}

}  // namespace aitraining::comm
