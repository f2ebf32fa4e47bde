#include "aitraining/comm/preflight.h"

#include <algorithm>

#include "aitraining/core/strings.h"

namespace aitraining::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kSmall = 1, kLarge = int64_t{1} << 18;  // fp32 elements: 4 bytes, 1 MiB
constexpr int kTries = 3;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string rate(double bytes_per_second) { return human_bytes(static_cast<uint64_t>(bytes_per_second)) + "/s"; }

// Best time of a few exchanges of `elements` with the ranks `step` away: this rank's view of its left neighbour.
double exchange_time(ProcessGroup& group, int step, int64_t elements, std::chrono::milliseconds patience) {
  const int to = (group.rank() + step) % group.size(), from = (group.rank() + group.size() - step) % group.size();
  const auto options = at::TensorOptions().dtype(at::kFloat).device(group.device());
  auto out = at::zeros({elements}, options), in = at::empty({elements}, options);
  double best = 1e30;
  for (int i = 0; i < kTries; ++i) {
    const auto begin = Clock::now();
    try {
      group.send_receive(out, to, in, from, patience);
      if (in.is_cuda()) in[0].item<float>();  // the host waits for the device
    } catch (const PeerLostError& e) {
      throw PeerLostError(fmt::format("[preflight] rank {} cannot exchange with rank {} and rank {} within {} s: {}",
                                      group.rank(), to, from, patience.count() / 1000, e.what()));
    }
    best = std::min(best, seconds_since(begin));
  }
  return best;
}

double all_reduce_time(ProcessGroup& group, int64_t elements) {
  auto tensor = at::zeros({elements}, at::TensorOptions().dtype(at::kFloat).device(group.device()));
  double best = 1e30;
  for (int i = 0; i < kTries; ++i) {
    const auto begin = Clock::now();
    group.all_reduce_sum(tensor);
    if (tensor.is_cuda()) tensor[0].item<float>();
    best = std::min(best, seconds_since(begin));
  }
  return group.max(best);
}

}  // namespace

Preflight check_connections(ProcessGroup& group, int local_world_size, std::chrono::milliseconds patience) {
  Preflight result;
  const int n = group.size();
  const auto place = [n](int from, int to) { return static_cast<size_t>(from * n + to); };
  std::vector<double> small(static_cast<size_t>(n * n)), large(small.size());
  for (int step = 1; step < n; ++step) {
    const int from = (group.rank() + n - step) % n;
    small[place(from, group.rank())] = exchange_time(group, step, kSmall, patience);
    large[place(from, group.rank())] = exchange_time(group, step, kLarge, patience);
  }
  small = group.sum(small);
  large = group.sum(large);
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) {
      if (from == to) continue;
      result.links.push_back({from, to, from / local_world_size == to / local_world_size, small[place(from, to)],
                              kLarge * 4 / std::max(1e-9, large[place(from, to)])});
    }
  }
  for (int64_t elements : {int64_t{1} << 10, int64_t{1} << 18, int64_t{1} << 22}) {
    result.all_reduce.emplace_back(elements * 4, all_reduce_time(group, elements));
  }
  return result;
}

std::string Preflight::line() const {
  std::vector<std::string> parts, sums;
  for (const auto& [bytes, seconds] : all_reduce) sums.push_back(fmt::format("{} in {:.2f} ms", human_bytes(bytes), 1e3 * seconds));
  parts.push_back("all-reduce " + join(sums, ", "));
  for (bool same : {true, false}) {
    std::vector<double> times, speeds;
    for (const Link& link : links) {
      if (link.same_machine != same) continue;
      times.push_back(link.seconds);
      speeds.push_back(link.bytes_per_second);
    }
    if (times.empty()) continue;
    parts.push_back(fmt::format("{} pairs {}: {:.0f} us, {} (slowest {})", times.size(),
                                same ? "on one machine" : "between machines", 1e6 * median(times), rate(median(speeds)),
                                rate(*std::min_element(speeds.begin(), speeds.end()))));
  }
  return "connections: " + join(parts, "; ");
}

std::vector<std::string> Preflight::slow_pairs() const {
  std::vector<const Link*> slow;
  std::vector<double> medians(2);
  for (int same = 0; same < 2; ++same) {
    std::vector<double> speeds;
    for (const Link& link : links) {
      if (link.same_machine == (same == 1)) speeds.push_back(link.bytes_per_second);
    }
    medians[static_cast<size_t>(same)] = median(speeds);
  }
  for (const Link& link : links) {
    if (link.bytes_per_second < medians[link.same_machine ? 1 : 0] / 4) slow.push_back(&link);
  }
  std::sort(slow.begin(), slow.end(), [](const Link* a, const Link* b) { return a->bytes_per_second < b->bytes_per_second; });
  std::vector<std::string> sentences;
  for (const Link* link : slow) {
    sentences.push_back(fmt::format("rank {} to rank {}: {}, where the median {} is {}", link->from, link->to,
                                    rate(link->bytes_per_second), link->same_machine ? "on one machine" : "between machines",
                                    rate(medians[link->same_machine ? 1 : 0])));
  }
  return sentences;
}

}  // namespace aitraining::comm
