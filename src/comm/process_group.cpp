#include "aitraining/comm/process_group.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "aitraining/core/error.h"
#include "backends.h"
#include "c10d_group.h"
#include "rendezvous.h"

namespace aitraining::comm {

std::vector<double> ProcessGroup::sum(std::vector<double> values) {
  if (size_ == 1) return values;
  auto host = at::from_blob(values.data(), {static_cast<int64_t>(values.size())}, at::kDouble);
  auto reduced = host.to(device_, /*non_blocking=*/false, /*copy=*/true);
  all_reduce_sum(reduced);
  host.copy_(reduced);
  return values;
}

double ProcessGroup::max(double value) {
  if (size_ == 1) return value;
  auto tensor = at::full({1}, value, at::TensorOptions().dtype(at::kDouble).device(device_));
  all_reduce_max(tensor);
  return tensor.item<double>();
}

namespace {

struct DoneWork : Work {
  void wait() override {}
};

class SingleGroup : public ProcessGroup {
 public:
  SingleGroup() : ProcessGroup(0, 1, at::kCPU) {}
  std::unique_ptr<Work> all_reduce_sum_async(at::Tensor) override { return std::make_unique<DoneWork>(); }
  void all_reduce_max(at::Tensor) override {}
  void broadcast(at::Tensor, int) override {}
  std::vector<at::Tensor> all_gather(const at::Tensor& tensor) override { return {tensor.clone()}; }
  void barrier() override {}
  std::unique_ptr<Work> all_gather_into_async(at::Tensor out, at::Tensor part) override {
    if (out.const_data_ptr() != part.const_data_ptr()) out.copy_(part);
    return std::make_unique<DoneWork>();
  }
  std::unique_ptr<Work> reduce_scatter_sum_async(ReduceScatter request) override {
    sum_in_order({request.in}, request.out, request.add);
    return std::make_unique<DoneWork>();
  }
  int64_t reduce_scatter_space(int64_t, bool) const override { return 0; }
  void send_receive(at::Tensor out, int, at::Tensor in, int, std::chrono::milliseconds) override { in.copy_(out); }
};

}  // namespace

std::unique_ptr<ProcessGroup> make_process_group(const GroupOptions& options) {
  if (options.backend == "single") {
    AIT_CHECK(options.world_size == 1, "backend single with {} ranks", options.world_size);
    return std::make_unique<SingleGroup>();
  }
  auto store = meet(options);
  auto prefixed = c10::make_intrusive<c10d::PrefixStore>("default", store);
  try {
    if (options.backend == "nccl") {
      return std::make_unique<NcclGroup>(options, store, make_nccl_backend(prefixed, options),
                                         c10::Device(at::kCUDA, options.local_rank));
    }
    AIT_CHECK(options.backend == "gloo", "backend {}", options.backend);
    return std::make_unique<GlooGroup>(options, store, make_gloo_backend(prefixed, options), c10::Device(at::kCPU));
  } catch (const c10::Error& e) {
    throw EnvironmentError("[comm] rank {} of {} cannot connect to the other ranks ({}): {}", options.rank,
                           options.world_size, options.backend, e.what_without_backtrace());
  }
}

}  // namespace aitraining::comm
