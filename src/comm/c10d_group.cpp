#include "c10d_group.h"

namespace aitraining::comm {

void C10dGroup::C10dWork::wait() {
  group->guarded(operation, [&] {
    for (auto& work : works) work->wait();
  });
  works.clear();
  if (then) std::exchange(then, nullptr)();
}

std::unique_ptr<C10dGroup::C10dWork> C10dGroup::begin(const char* operation, std::vector<at::Tensor> tensors) {
  auto work = std::make_unique<C10dWork>();
  work->group = this;
  work->operation = operation;
  work->tensors = std::move(tensors);
  return work;
}

void C10dGroup::guarded(const char* operation, const std::function<void()>& f) const {
  try {
    f();
  } catch (const std::exception& e) {
    const std::string text = e.what();
    if (text.find("imed out") != std::string::npos) {
      throw PeerLostError(fmt::format("[comm] rank {} of {}: {} got no answer from another rank within {} s "
                                      "(--ddp-timeout): that rank hangs, is stopped, or cannot be reached.",
                                      rank_, size_, operation, timeout_.count()));
    }
    throw PeerLostError(fmt::format(
        "[comm] rank {} of {}: {} failed: {}. Another rank ended or cannot be reached; the first rank that failed "
        "tells the cause.",
        rank_, size_, operation, text.substr(0, text.find('\n'))));
  }
}

std::unique_ptr<Work> C10dGroup::all_reduce_sum_async(at::Tensor tensor) {
  ++traffic_.all_reduces;
  traffic_.all_reduced += static_cast<uint64_t>(tensor.numel());
  traffic_.bytes_sent += 2 * tensor.nbytes() * static_cast<uint64_t>(size_ - 1) / static_cast<uint64_t>(size_);
  auto work = begin("all-reduce", {tensor});
  guarded(work->operation, [&] { work->works = {backend_->allreduce(work->tensors, c10d::AllreduceOptions())}; });
  return work;
}

void C10dGroup::all_reduce_max(at::Tensor tensor) {
  c10d::AllreduceOptions options;
  options.reduceOp = c10d::ReduceOp::MAX;
  auto work = begin("all-reduce", {tensor});
  guarded(work->operation, [&] { work->works = {backend_->allreduce(work->tensors, options)}; });
  work->wait();
}

void C10dGroup::broadcast(at::Tensor tensor, int root) {
  c10d::BroadcastOptions options;
  options.rootRank = root;
  auto work = begin("broadcast", {tensor});
  guarded(work->operation, [&] { work->works = {backend_->broadcast(work->tensors, options)}; });
  work->wait();
}

std::vector<at::Tensor> C10dGroup::all_gather(const at::Tensor& tensor) {
  std::vector<std::vector<at::Tensor>> outputs(1);
  for (int r = 0; r < size_; ++r) outputs[0].push_back(at::empty_like(tensor));
  auto work = begin("all-gather", {tensor});
  guarded(work->operation,
          [&] { work->works = {backend_->allgather(outputs, work->tensors, c10d::AllgatherOptions())}; });
  work->wait();
  return outputs[0];
}

void C10dGroup::barrier() {
  auto token = at::zeros({1}, at::TensorOptions().dtype(at::kFloat).device(device_));
  auto work = begin("barrier", {token});
  guarded(work->operation, [&] { work->works = {backend_->allreduce(work->tensors, c10d::AllreduceOptions())}; });
  work->wait();
  if (device_.is_cuda()) token.item<float>();
}

void C10dGroup::send_receive(at::Tensor out, int to, at::Tensor in, int from, std::chrono::milliseconds patience) {
  constexpr int kTag = 0;  // sharded collectives use those from 1 on
  std::vector<at::Tensor> outgoing{out}, incoming{in};
  guarded("send and receive", [&] {
    auto receiving = backend_->recv(incoming, from, kTag);
    auto sending = backend_->send(outgoing, to, kTag);
    receiving->wait(patience);
    sending->wait(patience);
  });
}

void C10dGroup::count_gather(const at::Tensor& out) {
  ++traffic_.all_gathers;
  traffic_.gathered += static_cast<uint64_t>(out.numel());
  traffic_.bytes_sent += out.nbytes() * static_cast<uint64_t>(size_ - 1) / static_cast<uint64_t>(size_);
}

void C10dGroup::count_reduce_scatter(const at::Tensor& in) {
  ++traffic_.reduce_scatters;
  traffic_.reduced += static_cast<uint64_t>(in.numel());
  traffic_.bytes_sent += in.nbytes() * static_cast<uint64_t>(size_ - 1) / static_cast<uint64_t>(size_);
}

void sum_in_order(const std::vector<at::Tensor>& parts, at::Tensor out, bool add) {
  at::Tensor sum = parts.front();
  for (size_t r = 1; r < parts.size(); ++r) sum.add_(parts[r]);
  if (add) {
    out.add_(sum);
  } else {
    out.copy_(sum);
  }
}

}  // namespace aitraining::comm
