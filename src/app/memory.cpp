#include "memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <regex>

#include <ATen/DeviceAccelerator.h>

#include "aitraining/core/error.h"
#include "aitraining/core/phase.h"
#include "aitraining/core/strings.h"

namespace aitraining::app {
namespace {

// A line "MemAvailable:  123 kB" of a file in /proc, in bytes.
uint64_t proc_bytes(const char* path, const std::string& wanted) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with(wanted)) return std::stoull(line.substr(wanted.size())) * 1024;
  }
  return 0;
}

// What the cgroup still allows; the largest number where there is no limit.
uint64_t cgroup_bytes() {
  uint64_t limit = 0, used = 0;
  if (!(std::ifstream("/sys/fs/cgroup/memory.max") >> limit)) return UINT64_MAX;
  std::ifstream("/sys/fs/cgroup/memory.current") >> used;
  return limit - std::min(limit, used);
}

// What `ulimit` still allows.
uint64_t limited_bytes(int resource, const std::string& counted_in) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return UINT64_MAX;
  }
  const uint64_t used = proc_bytes("/proc/self/status", counted_in);
  return limit.rlim_cur - std::min<uint64_t>(limit.rlim_cur, used);
}

// What the allocator tells of the size that it was asked for.
std::string wanted_of(const std::string& text) {
  std::smatch found;
  if (std::regex_search(text, found, std::regex("tried to allocate ([0-9]+) bytes"))) {
    return human_bytes(std::stoull(found[1]));
  }
  if (std::regex_search(text, found, std::regex("Tried to allocate ([0-9.]+ [KMGT]?i?B)"))) return found[1];
  return "an unknown amount";
}

std::string free_of(const std::string& text, bool gpu) {
  std::smatch found;
  if (std::regex_search(text, found, std::regex("of which ([0-9.]+ [KMGT]?i?B) is free"))) return found[1];
  if (gpu) return "unknown";
  // What the failed step held is free again by now.
  std::string free = human_bytes(free_memory(at::kCPU, 1)) + " after giving up";
  for (const auto& [resource, flag] : {std::pair{RLIMIT_DATA, "-d"}, std::pair{RLIMIT_AS, "-v"}}) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
      free += fmt::format(", limit {} by ulimit {}", human_bytes(limit.rlim_cur), flag);
    }
  }
  return free;
}

}  // namespace

uint64_t free_memory(c10::Device device, int ranks_here) {
  if (device.is_cuda()) return at::accelerator::getMemoryInfo(device.index()).first;
  const uint64_t shared = std::min(proc_bytes("/proc/meminfo", "MemAvailable:"), cgroup_bytes());
  return std::min({shared / static_cast<uint64_t>(std::max(1, ranks_here)), limited_bytes(RLIMIT_DATA, "VmData:"),
                   limited_bytes(RLIMIT_AS, "VmSize:")});
}

std::string out_of_memory_message(const std::string& text, int rank, const config::TrainingParams& params) {
  const bool gpu = params.device == "cuda";
  const std::string backend = params.distributed_backend.value_or("ddp");
  const bool sharded = backend == "zero3" || backend == "deepspeed";
  std::string advice = fmt::format("Reduce --batch-size (now {})", params.batch_size);
  if (params.block_size > 0) advice += fmt::format(" or --block-size (now {})", params.block_size);
  if (params.zero3_resident != "0") advice += fmt::format(", lower --zero3-resident (now {})", params.zero3_resident);
  advice += sharded ? ", use more ranks (--nproc-per-node)" : " or use --distributed-backend deepspeed";
  if (!params.peft) advice += ", or train adapters with --peft";
  return fmt::format("Rank {} ran out of {}memory (wanted {}, free {}) in {}. {}.", rank, gpu ? "GPU " : "",
                     wanted_of(text), free_of(text, gpu), current_phase(), advice);
}

}  // namespace aitraining::app
