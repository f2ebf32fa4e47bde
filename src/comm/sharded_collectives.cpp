// All-gather and reduce-scatter of flat tensors: the traffic of sharded engines.
#include "c10d_group.h"

namespace aitraining::comm {
namespace {

at::Tensor piece(const at::Tensor& flat, int64_t index, int64_t count) {
  return flat.narrow(0, index * count, count);
}

// Tags separate exchanges that are under way at once between the same two ranks; far more than ever are.
constexpr int kTags = 1 << 20;

}  // namespace

std::unique_ptr<C10dGroup::C10dWork> GlooGroup::exchange(const char* operation,
                                                         const std::function<at::Tensor(int)>& outgoing,
                                                         const std::function<at::Tensor(int)>& incoming) {
  auto work = begin(operation, {});
  tag_ = tag_ % kTags + 1;
  guarded(operation, [&] {
    // Each rank begins with its right neighbour, so that not all send to rank 0 at once.
    for (int step = 1; step < size_; ++step) {
      const int to = (rank_ + step) % size_, from = (rank_ + size_ - step) % size_;
      std::vector<at::Tensor> in{incoming(from)}, out{outgoing(to)};
      work->works.push_back(backend_->recv(in, from, tag_));
      work->works.push_back(backend_->send(out, to, tag_));
      work->tensors.push_back(in[0]);
      work->tensors.push_back(out[0]);
    }
  });
  return work;
}

std::unique_ptr<Work> GlooGroup::all_gather_into_async(at::Tensor out, at::Tensor part) {
  const int64_t n = part.numel();
  AIT_CHECK(out.numel() == n * size_, "all-gather of {} elements a rank into {}", n, out.numel());
  count_gather(out);
  auto own = piece(out, rank_, n);
  if (own.const_data_ptr() != part.const_data_ptr()) own.copy_(part);
  return exchange("all-gather", [&](int) { return part; }, [&](int from) { return piece(out, from, n); });
}

std::unique_ptr<Work> GlooGroup::reduce_scatter_sum_async(ReduceScatter request) {
  const int64_t n = request.out.numel();
  AIT_CHECK(request.in.numel() == n * size_ && request.space.numel() >= n * size_,
            "reduce-scatter of {} elements into {}", request.in.numel(), n);
  count_reduce_scatter(request.in);
  auto work = exchange("reduce-scatter", [&](int to) { return piece(request.in, to, n); },
                       [&](int from) { return piece(request.space, from, n); });
  work->then = [this, request = std::move(request), n] {
    std::vector<at::Tensor> parts;
    for (int r = 0; r < size_; ++r) parts.push_back(piece(r == rank_ ? request.in : request.space, r, n));
    sum_in_order(parts, request.out, request.add);
  };
  return work;
}

std::unique_ptr<Work> NcclGroup::all_gather_into_async(at::Tensor out, at::Tensor part) {
  count_gather(out);
  auto work = begin("all-gather", {out, part});
  guarded(work->operation, [&] { work->works = {backend_->_allgather_base(out, part, c10d::AllgatherOptions())}; });
  return work;
}

std::unique_ptr<Work> NcclGroup::reduce_scatter_sum_async(ReduceScatter request) {
  const int64_t n = request.out.numel();
  count_reduce_scatter(request.in);
  auto work = begin("reduce-scatter", {request.out, request.in, request.space});
  if (request.ordered) {
    auto all = request.space.narrow(0, 0, n * size_);
    std::vector<int64_t> equal;
    guarded(work->operation, [&] {
      work->works = {backend_->alltoall_base(all, request.in, equal, equal, c10d::AllToAllOptions())};
    });
    work->then = [this, request, all, n] {
      std::vector<at::Tensor> parts;
      for (int r = 0; r < size_; ++r) parts.push_back(piece(all, r, n));
      sum_in_order(parts, request.out, request.add);
    };
    return work;
  }
  auto sum = request.space.narrow(0, 0, n);
  guarded(work->operation, [&] {
    work->works = {backend_->_reduce_scatter_base(sum, request.in, c10d::ReduceScatterOptions())};
  });
  work->then = [request, sum] { sum_in_order({sum}, request.out, request.add); };
  return work;
}

}  // namespace aitraining::comm
