#pragma once
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "aitraining/comm/process_group.h"

namespace aitraining::comm {

// What NCCL and Gloo share.
class C10dGroup : public ProcessGroup {
 public:
  C10dGroup(const GroupOptions& options, c10::intrusive_ptr<c10d::Store> store,
            c10::intrusive_ptr<c10d::Backend> backend, c10::Device device)
      : ProcessGroup(options.rank, options.world_size, device),
        timeout_(options.timeout), store_(std::move(store)), backend_(std::move(backend)) {}

  std::unique_ptr<Work> all_reduce_sum_async(at::Tensor tensor) override;
  void all_reduce_max(at::Tensor tensor) override;
  void broadcast(at::Tensor tensor, int root) override;
  std::vector<at::Tensor> all_gather(const at::Tensor& tensor) override;
  void barrier() override;
  void send_receive(at::Tensor out, int to, at::Tensor in, int from, std::chrono::milliseconds patience) override;

 protected:
  // Collectives of c10d under one name; they keep their tensors until they are done.
  struct C10dWork : Work {
    C10dGroup* group = nullptr;
    const char* operation = "";
    std::vector<at::Tensor> tensors;
    std::vector<c10::intrusive_ptr<c10d::Work>> works;
    std::function<void()> then;  // after the last one, in wait()
    void wait() override;
  };
  std::unique_ptr<C10dWork> begin(const char* operation, std::vector<at::Tensor> tensors);
  // f(): one or several c10d works. A failure becomes PeerLostError naming rank and operation.
  void guarded(const char* operation, const std::function<void()>& f) const;
  void count_gather(const at::Tensor& out);
  void count_reduce_scatter(const at::Tensor& in);

  std::chrono::seconds timeout_;
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::Backend> backend_;
};

// Gloo's own all-gather flattens into a copy of the result, and its reduce-scatter all-reduces everything: here both are
// made of sends and receives between every two ranks, straight from and into the tensors.
class GlooGroup : public C10dGroup {
 public:
  using C10dGroup::C10dGroup;
  std::unique_ptr<Work> all_gather_into_async(at::Tensor out, at::Tensor part) override;
  std::unique_ptr<Work> reduce_scatter_sum_async(ReduceScatter request) override;
  int64_t reduce_scatter_space(int64_t in_elements, bool) const override { return in_elements; }

 private:
  // Sends outgoing(r) to, and receives incoming(r) from, every other rank r.
  std::unique_ptr<C10dWork> exchange(const char* operation, const std::function<at::Tensor(int)>& outgoing,
                                     const std::function<at::Tensor(int)>& incoming);
  int tag_ = 0;
};

class NcclGroup : public C10dGroup {
 public:
  using C10dGroup::C10dGroup;
  std::unique_ptr<Work> all_gather_into_async(at::Tensor out, at::Tensor part) override;
  std::unique_ptr<Work> reduce_scatter_sum_async(ReduceScatter request) override;
  int64_t reduce_scatter_space(int64_t in_elements, bool ordered) const override {
    return ordered ? in_elements : in_elements / size();
  }
};

// out = parts[0] + parts[1] + ... in that order, or out += that. Each part is [n]; the first one is overwritten.
void sum_in_order(const std::vector<at::Tensor>& parts, at::Tensor out, bool add);

}  // namespace aitraining::comm
