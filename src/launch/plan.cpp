#include <algorithm>

#include <fmt/format.h>

#include "aitraining/core/error.h"
#include "aitraining/launch/launch.h"

namespace aitraining::launch {
namespace {

constexpr int kMostRanksPerCore = 16;

std::string device_sentence(const DeviceInventory& devices) {
  if (devices.cuda_devices > 0) return fmt::format("{} visible GPU(s)", devices.cuda_devices);
  return devices.driver.empty()
             ? "no GPU (no NVIDIA driver was found)"
             : fmt::format("no visible GPU (driver {}; see CUDA_VISIBLE_DEVICES)", devices.driver);
}

std::string choose_device(const config::TrainingParams& params, const DeviceInventory& devices,
                          const LaunchInputs& inputs, std::vector<std::string>& notes) {
  if (params.device == "cpu" || (inputs.forced_processes && *inputs.forced_processes <= 0))
    return "cpu";
  if (devices.cuda_devices > 0) return "cuda";
  if (params.device == "cuda") {
    throw UserError(
        "device cuda was asked for, but this machine has {}: use --device cpu, or leave --device "
        "out",
        device_sentence(devices));
  }
  notes.emplace_back("No GPU found. Forcing training on CPU. This will be super slow!");
  return "cpu";
}

int choose_ranks(const std::string& device, const DeviceInventory& devices,
                 const LaunchInputs& inputs, std::vector<std::string>& notes) {
  const int forced = inputs.forced_processes.value_or(0);
  if (forced <= 0) return device == "cuda" ? devices.cuda_devices : 1;
  if (device == "cuda" && forced > devices.cuda_devices) {
    throw UserError(
        "{} ranks were asked for, but there are {} visible GPU(s), and each rank needs its own: "
        "ask for {} "
        "or less (--nproc-per-node), or use --device cpu",
        forced, devices.cuda_devices, devices.cuda_devices);
  }
  if (device == "cpu" && forced > kMostRanksPerCore * devices.cores) {
    throw UserError("{} ranks were asked for on {} core(s): more than {} a core only stop each other. Ask for fewer "
                    "(--nproc-per-node)", forced, devices.cores, kMostRanksPerCore);
  }
  if (device == "cpu" && forced > devices.cores) {
    notes.push_back(fmt::format("{} ranks on {} core(s): ranks share cores, which is slow", forced,
                                devices.cores));
  }
  return forced;
}

void choose_precision(const config::TrainingParams& params, const DeviceInventory& devices,
                      LaunchPlan& plan) {
  plan.precision = params.mixed_precision.value_or("fp32");
  if (!params.mixed_precision) {
    plan.precision_reason = "mixed_precision is not set";
  } else if (plan.precision == "fp16" && plan.device == "cpu") {
    throw UserError(
        "mixed_precision fp16 was asked for, but the run is on the CPU ({}), which has no fp16 "
        "training: "
        "use --mixed-precision bf16, or leave it out for fp32",
        device_sentence(devices));
  } else if (plan.precision == "fp16") {
    throw UserError(
        "not supported yet in this build: mixed_precision fp16 (device found: {}). Use "
        "--mixed-precision bf16, "
        "or leave it out for fp32",
        device_sentence(devices));
  } else if (plan.device == "cpu" && !devices.fast_bf16) {
    plan.precision_reason =
        "as asked; this CPU has neither AVX512_BF16 nor AMX, so fp32 would be faster";
  } else {
    plan.precision_reason = "as asked";
  }
}

}  // namespace

LaunchPlan make_plan(const config::TrainingParams& params, const DeviceInventory& devices,
                     const LaunchInputs& inputs) {
  LaunchPlan plan;
  plan.notes = inputs.notes;
  plan.device = choose_device(params, devices, inputs, plan.notes);
  plan.ranks = choose_ranks(plan.device, devices, inputs, plan.notes);
  const std::string backend = params.distributed_backend.value_or("ddp");
  plan.engine = plan.ranks == 1 ? "single" : backend == "deepspeed" ? "zero3" : backend;
  if (plan.ranks == 1 && backend != "ddp") {
    plan.notes.push_back(fmt::format("distributed_backend {}: one rank has nobody to share with; zero3 and zero2 take "
                                     "effect from two ranks on (--nproc-per-node)", backend));
  }
  if (plan.engine == "zero3" && params.check_replicas && !params.peft) {
    plan.notes.emplace_back("check_replicas has nothing to compare: under zero3 no weight is on two ranks");
  }
  if (plan.device == "cpu" && (params.offload_optimizer || params.offload_param)) {
    plan.notes.emplace_back("offloading to the CPU changes nothing: ranks on the CPU keep everything in host memory");
  }
  choose_precision(params, devices, plan);
  plan.threads_per_rank = std::max(1, devices.cores / plan.ranks);
  return plan;
}

}  // namespace aitraining::launch
