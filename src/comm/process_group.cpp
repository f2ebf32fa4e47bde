#include "aitraining/comm/process_group.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "aitraining/core/error.h"
#include "backends.h"

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
};

class C10dGroup : public ProcessGroup {
 public:
  C10dGroup(const GroupOptions& options, c10::intrusive_ptr<c10d::Store> store,
            c10::intrusive_ptr<c10d::Backend> backend, c10::Device device)
      : ProcessGroup(options.rank, options.world_size, device),
        store_(std::move(store)), backend_(std::move(backend)) {}

  std::unique_ptr<Work> all_reduce_sum_async(at::Tensor tensor) override {
    bytes_ += tensor.nbytes();
    return start("all-reduce", tensor, [&](std::vector<at::Tensor>& tensors) {
      return backend_->allreduce(tensors, c10d::AllreduceOptions());
    });
  }

  void all_reduce_max(at::Tensor tensor) override {
    c10d::AllreduceOptions options;
    options.reduceOp = c10d::ReduceOp::MAX;
    start("all-reduce", tensor, [&](std::vector<at::Tensor>& tensors) {
      return backend_->allreduce(tensors, options);
    })->wait();
  }

  void broadcast(at::Tensor tensor, int root) override {
    c10d::BroadcastOptions options;
    options.rootRank = root;
    bytes_ += tensor.nbytes();
    start("broadcast", tensor, [&](std::vector<at::Tensor>& tensors) {
      return backend_->broadcast(tensors, options);
    })->wait();
  }

  std::vector<at::Tensor> all_gather(const at::Tensor& tensor) override {
    std::vector<std::vector<at::Tensor>> outputs(1);
    for (int r = 0; r < size_; ++r) outputs[0].push_back(at::empty_like(tensor));
    bytes_ += tensor.nbytes();
    start("all-gather", tensor, [&](std::vector<at::Tensor>& tensors) {
      return backend_->allgather(outputs, tensors, c10d::AllgatherOptions());
    })->wait();
    return outputs[0];
  }

  void barrier() override {
    auto token = at::zeros({1}, at::TensorOptions().dtype(at::kFloat).device(device_));
    all_reduce_sum(token);
    if (device_.is_cuda()) token.item<float>();
  }

  uint64_t bytes_sent() const override { return bytes_; }

 private:
  // The collective keeps its tensors until it is done.
  struct C10dWork : Work {
    C10dGroup* group = nullptr;
    const char* operation = "";
    std::vector<at::Tensor> tensors;
    c10::intrusive_ptr<c10d::Work> work;
    void wait() override {
      group->guarded(operation, [&] { work->wait(); });
    }
  };

  template <class F>
  std::unique_ptr<Work> start(const char* operation, const at::Tensor& tensor, F&& issue) {
    auto result = std::make_unique<C10dWork>();
    result->group = this;
    result->operation = operation;
    result->tensors.push_back(tensor);
    guarded(operation, [&] { result->work = issue(result->tensors); });
    return result;
  }

  template <class F>
  void guarded(const char* operation, F&& f) {
    try {
      f();
    } catch (const std::exception& e) {
      const std::string text = e.what();
      throw PeerLostError(fmt::format(
          "[comm] rank {} of {}: {} failed: {}. Another rank ended or cannot be reached; the first rank that failed "
          "tells the cause.",
          rank_, size_, operation, text.substr(0, text.find('\n'))));
    }
  }

  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::Backend> backend_;
  uint64_t bytes_ = 0;
};

c10::intrusive_ptr<c10d::Store> make_store(const GroupOptions& options) {
  c10d::TCPStoreOptions store;
  store.port = static_cast<uint16_t>(options.master_port);
  store.isServer = options.rank == 0;
  store.numWorkers = static_cast<size_t>(options.world_size);
  store.timeout = options.timeout;
  if (options.rank == 0 && options.store_listen_fd >= 0) store.masterListenFd = options.store_listen_fd;
  try {
    return c10::make_intrusive<c10d::TCPStore>(options.master_addr, store);
  } catch (const std::exception& e) {
    throw EnvironmentError("[comm] rank {} of {} cannot join the rendezvous at {}:{}: {}", options.rank,
                           options.world_size, options.master_addr, options.master_port, e.what());
  }
}

}  // namespace

std::unique_ptr<ProcessGroup> make_process_group(const GroupOptions& options) {
  if (options.backend == "single") {
    AIT_CHECK(options.world_size == 1, "backend single with {} ranks", options.world_size);
    return std::make_unique<SingleGroup>();
  }
  auto store = make_store(options);
  auto prefixed = c10::make_intrusive<c10d::PrefixStore>("default", store);
  try {
    if (options.backend == "nccl") {
      return std::make_unique<C10dGroup>(options, store, make_nccl_backend(prefixed, options),
                                         c10::Device(at::kCUDA, options.local_rank));
    }
    AIT_CHECK(options.backend == "gloo", "backend {}", options.backend);
    return std::make_unique<C10dGroup>(options, store, make_gloo_backend(prefixed, options), c10::Device(at::kCPU));
  } catch (const c10::Error& e) {
    throw EnvironmentError("[comm] rank {} of {} cannot connect to the other ranks ({}): {}", options.rank,
                           options.world_size, options.backend, e.what_without_backtrace());
  }
}

}  // namespace aitraining::comm
