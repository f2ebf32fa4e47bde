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
    throw UserError(
        "{} ranks were asked for on {} core(s): more than {} a core only stop each other. Ask for "
        "fewer "
        "(--nproc-per-node)",
        forced, devices.cores, kMostRanksPerCore);
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

// ZeRO-3 is chosen by itself for these tasks alone, from three ranks on, unless what is trained is
// an adapter over a quantised model in bf16: that fits anyway.
std::string default_backend(const config::TrainingParams& params, config::Task task, int ranks) {
  if (task == config::Task::llm || ranks < 3) return "ddp";
  const bool quantized = params.quantization == "int4" || params.quantization == "int8";
  return quantized && params.peft && params.mixed_precision == "bf16" ? "ddp" : "zero3";
}

void choose_engine(const config::TrainingParams& params, const LaunchInputs& inputs,
                   LaunchPlan& plan) {
  const int ranks = plan.world_size();
  std::string backend =
      params.distributed_backend.value_or(default_backend(params, inputs.task, ranks));
  if (backend == "deepspeed") backend = "zero3";
  plan.engine = ranks == 1 ? "single" : backend;
  if (ranks == 1 && backend != "ddp") {
    plan.notes.push_back(fmt::format(
        "distributed_backend {}: one rank has nobody to share with; zero3 and zero2 take "
        "effect from two ranks on (--nproc-per-node)",
        params.distributed_backend.value_or(backend)));
  }
  if (plan.engine == "zero3" && params.check_replicas && !params.peft) {
    plan.notes.emplace_back(
        "check_replicas has nothing to compare: under zero3 no weight is on two ranks");
  }
}

void note_devices(const config::TrainingParams& params, const DeviceInventory& devices,
                  LaunchPlan& plan) {
  if (plan.device == "cpu" && (params.offload_optimizer || params.offload_param)) {
    plan.notes.emplace_back(
        "offloading to the CPU changes nothing: ranks on the CPU keep everything in host memory");
  }
  if (plan.device == "cpu" && params.quantization && *params.quantization != "none") {
    plan.notes.push_back(
        fmt::format("Quantization {} requested but CUDA not available. Skipping quantization.",
                    *params.quantization));
  }
  if (plan.device != "cuda") return;
  const std::string slow = slow_link_warning(devices.links, plan.ranks);
  if (!slow.empty()) plan.notes.push_back(slow);
}

// These cards have no direct way between them, and NCCL would look for one.
bool lacks_peer_access(const DeviceInventory& devices) {
  return std::ranges::any_of(devices.names, [](const std::string& name) {
    return name.find("RTX 40") != std::string::npos;
  });
}

void choose_environment(const config::TrainingParams& params, const DeviceInventory& devices,
                        LaunchPlan& plan) {
  auto& variables = plan.environment;
  variables["ACCELERATE_MIXED_PRECISION"] = plan.precision == "fp32" ? "no" : plan.precision;
  variables["ACCELERATE_GRADIENT_ACCUMULATION_STEPS"] =
      std::to_string(params.gradient_accumulation);
  if (plan.device == "cpu") variables["ACCELERATE_USE_CPU"] = "true";
  const std::string timeout = std::to_string(params.ddp_timeout);
  variables["TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"] = timeout;
  variables["NCCL_TIMEOUT"] = timeout;
  if (plan.engine == "zero2" || plan.engine == "zero3") {
    variables["ACCELERATE_USE_DEEPSPEED"] = "true";
    variables["ACCELERATE_DEEPSPEED_ZERO_STAGE"] = plan.engine == "zero3" ? "3" : "2";
    variables["ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE"] =
        params.offload_optimizer.value_or("none");
    variables["ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_DEVICE"] = params.offload_param.value_or("none");
    variables["ACCELERATE_DEEPSPEED_ZERO3_INIT"] = plan.engine == "zero3" ? "true" : "false";
    variables["ACCELERATE_DEEPSPEED_ZERO3_SAVE_16BIT_MODEL"] =
        plan.engine == "zero3" ? "true" : "false";
  }
  if (plan.device == "cuda" && plan.ranks > 1 && lacks_peer_access(devices)) {
    variables["NCCL_P2P_DISABLE"] = variables["NCCL_IB_DISABLE"] = "1";
    plan.notes.emplace_back(
        "Using RTX 4000 series which doesn't support faster communication speedups. "
        "Ensuring P2P and IB communications are disabled.");
  }
}

}  // namespace

LaunchPlan make_plan(const config::TrainingParams& params, const DeviceInventory& devices,
                     const LaunchInputs& inputs) {
  LaunchPlan plan;
  plan.notes = inputs.notes;
  plan.nnodes = inputs.nnodes;
  plan.device = choose_device(params, devices, inputs, plan.notes);
  plan.ranks = choose_ranks(plan.device, devices, inputs, plan.notes);
  choose_engine(params, inputs, plan);
  note_devices(params, devices, plan);
  choose_precision(params, devices, plan);
  plan.threads_per_rank = inputs.threads.value_or(std::max(1, devices.cores / plan.ranks));
  if (plan.device == "cuda") {
    for (const Gpu& gpu : devices.gpus) plan.cores.push_back(gpu.cores);
  }
  plan.counted_devices =
      plan.device == "cuda" || inputs.forced_processes.value_or(0) > 0 ? plan.ranks : 0;
  choose_environment(params, devices, plan);
  return plan;
}

}  // namespace aitraining::launch
