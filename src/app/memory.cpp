#include "memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <regex>

#include <ATen/DeviceAccelerator.h>

#include "aitraining/core/error.h"
#include "aitraining/core/phase.h"
#include "aitraining/core/strings.h"
#include "aitraining/launch/devices.h"

namespace aitraining::app {
namespace {

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
  return launch::free_host_memory() / static_cast<uint64_t>(std::max(1, ranks_here));
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
