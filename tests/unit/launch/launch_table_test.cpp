// The launcher's table: devices x task x backend x quantization x peft x precision, and the command
// line that the reference would have run (rows L1 to L8).
#include <gtest/gtest.h>

#include "aitraining/core/strings.h"
#include "aitraining/launch/launch.h"

namespace aitraining::launch {
namespace {

using config::Task;
constexpr int kCounts[] = {0, 1, 2, 3, 8};

DeviceInventory machine(int gpus) {
  DeviceInventory devices;
  devices.cuda_devices = gpus;
  devices.names.assign(static_cast<size_t>(gpus), "NVIDIA H200");
  devices.gpus.resize(static_cast<size_t>(gpus));
  devices.driver = "580";
  devices.cores = 16;
  return devices;
}

struct Case {
  Task task = Task::llm;
  int gpus = 0;
  config::TrainingParams params = [] {
    config::TrainingParams p;
    p.device = "auto";
    p.project_name = "/projects/run";
    p.gradient_accumulation = 4;
    p.ddp_timeout = 7200;
    return p;
  }();

  LaunchPlan plan() const {
    return make_plan(params, machine(gpus), {.forced_processes = {}, .task = task});
  }
  std::string engine() const { return plan().engine; }
  std::string command() const { return join(accelerate_command(plan(), params, task), " "); }
};

std::vector<std::string> engines(Case c) {
  std::vector<std::string> all;
  for (int gpus : kCounts) {
    c.gpus = gpus;
    all.push_back(c.engine());
  }
  return all;
}

using Engines = std::vector<std::string>;

TEST(LaunchTable, S48AnLlmIsNeverShardedByItself) {
  Case c;
  EXPECT_EQ(engines(c), (Engines{"single", "single", "ddp", "ddp", "ddp"}));
  c.params.peft = true;
  c.params.mixed_precision = "bf16";
  EXPECT_EQ(engines(c), (Engines{"single", "single", "ddp", "ddp", "ddp"}));
}

TEST(LaunchTable, S49AnLlmIsShardedWhenAsked) {
  Case c;
  for (const char* backend : {"deepspeed", "zero3"}) {
    c.params.distributed_backend = backend;
    EXPECT_EQ(engines(c), (Engines{"single", "single", "zero3", "zero3", "zero3"})) << backend;
  }
}

TEST(LaunchTable, S50OtherTasksAreShardedFromThreeDevicesOn) {
  for (Task task : {Task::seq2seq, Task::vlm}) {
    Case c;
    c.task = task;
    EXPECT_EQ(engines(c), (Engines{"single", "single", "ddp", "zero3", "zero3"}));
    c.params.distributed_backend = "ddp";  // the user's word counts
    EXPECT_EQ(engines(c), (Engines{"single", "single", "ddp", "ddp", "ddp"}));
  }
}

TEST(LaunchTable, S51QuantizedAdaptersInBf16StayReplicated) {
  for (Task task : {Task::seq2seq, Task::vlm}) {
    for (const char* quantization : {"int4", "int8"}) {
      Case c;
      c.task = task;
      c.params.quantization = quantization;
      c.params.peft = true;
      c.params.mixed_precision = "bf16";
      EXPECT_EQ(engines(c), (Engines{"single", "single", "ddp", "ddp", "ddp"}));
      c.gpus = 3;
      Case without = c;
      without.params.quantization.reset();
      EXPECT_EQ(without.engine(), "zero3");
      without = c;
      without.params.peft = false;
      EXPECT_EQ(without.engine(), "zero3");
      without = c;
      without.params.mixed_precision.reset();
      EXPECT_EQ(without.engine(), "zero3");
    }
  }
}

constexpr const char* kDeepspeed =
    "accelerate launch --use_deepspeed --zero_stage 3 --offload_optimizer_device none "
    "--offload_param_device none "
    "--zero3_save_16bit_model true --zero3_init_flag true --deepspeed_multinode_launcher standard "
    "--gradient_accumulation_steps 4 ";
const std::string kClm =
    " -m autotrain.trainers.clm --training_config /projects/run/training_params.json";
const std::string kSeq2Seq =
    " -m autotrain.trainers.seq2seq --training_config /projects/run/training_params.json";
const std::string kVlm =
    " -m autotrain.trainers.vlm --training_config /projects/run/training_params.json";

TEST(AccelerateCommand, S11RowsL1ToL3) {
  Case c;
  EXPECT_EQ(c.command(), "python -m accelerate.commands.launch --cpu" + kClm);
  c.gpus = 1;
  EXPECT_EQ(c.command(),
            "python -m accelerate.commands.launch --num_machines 1 --num_processes 1 "
            "--mixed_precision no" +
                kClm);
  c.gpus = 3;
  c.params.mixed_precision = "bf16";
  EXPECT_EQ(
      c.command(),
      "accelerate launch --multi_gpu --num_machines 1 --num_processes 3 --mixed_precision bf16" +
          kClm);
}

TEST(AccelerateCommand, S6S7UnsetMeansDdp) {
  Case unset, named;
  unset.gpus = named.gpus = 4;
  named.params.distributed_backend = "ddp";
  EXPECT_EQ(
      named.command(),
      "accelerate launch --multi_gpu --num_machines 1 --num_processes 4 --mixed_precision no" +
          kClm);
  EXPECT_EQ(unset.command(), named.command());
}

TEST(AccelerateCommand, S36S42S46RowL4) {
  Case c;
  c.gpus = 2;
  c.params.distributed_backend = "deepspeed";
  EXPECT_EQ(c.command(), kDeepspeed + ("--mixed_precision no" + kClm));
  c.params.mixed_precision = "bf16";
  c.gpus = 8;
  EXPECT_EQ(c.command(), kDeepspeed + ("--mixed_precision bf16" + kClm));
  c.gpus = 1;  // row L2 whatever the backend
  EXPECT_EQ(c.command(),
            "python -m accelerate.commands.launch --num_machines 1 --num_processes 1 "
            "--mixed_precision bf16" +
                kClm);
}

TEST(AccelerateCommand, RowsL6ToL8) {
  Case c;
  c.task = Task::seq2seq;
  EXPECT_EQ(c.command(), "accelerate launch --cpu" + kSeq2Seq);
  c.gpus = 1;
  EXPECT_EQ(c.command(),
            "accelerate launch --num_machines 1 --num_processes 1 --mixed_precision no" + kSeq2Seq);
  c.gpus = 2;
  EXPECT_EQ(
      c.command(),
      "accelerate launch --multi_gpu --num_machines 1 --num_processes 2 --mixed_precision no" +
          kSeq2Seq);
  c.gpus = 3;
  EXPECT_EQ(c.command(), kDeepspeed + ("--mixed_precision no" + kSeq2Seq));
  c.task = Task::vlm;
  c.params.quantization = "int4";
  c.params.peft = true;
  c.params.mixed_precision = "bf16";
  EXPECT_EQ(
      c.command(),
      "accelerate launch --multi_gpu --num_machines 1 --num_processes 3 --mixed_precision bf16" +
          kVlm);
}

TEST(AccelerateCommand, RanksOnTheCpuCountAsDevices) {
  Case c;
  const LaunchPlan plan = make_plan(c.params, machine(0), {.forced_processes = 2});
  EXPECT_EQ(plan.counted_devices, 2);
  EXPECT_EQ(
      join(accelerate_command(plan, c.params, c.task), " "),
      "accelerate launch --multi_gpu --num_machines 1 --num_processes 2 --mixed_precision no" +
          kClm);
}

TEST(PlannedEnvironment, S35WhatAccelerateExports) {
  Case c;
  c.gpus = 2;
  auto variables = c.plan().environment;
  EXPECT_EQ(variables.at("ACCELERATE_MIXED_PRECISION"), "no");
  EXPECT_EQ(variables.at("ACCELERATE_GRADIENT_ACCUMULATION_STEPS"), "4");
  EXPECT_EQ(variables.at("TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"), "7200");
  EXPECT_EQ(variables.at("NCCL_TIMEOUT"), "7200");
  EXPECT_FALSE(variables.contains("ACCELERATE_USE_DEEPSPEED"));
  EXPECT_FALSE(variables.contains("ACCELERATE_USE_CPU"));
  c.params.distributed_backend = "deepspeed";
  c.params.mixed_precision = "bf16";
  variables = c.plan().environment;
  EXPECT_EQ(variables.at("ACCELERATE_USE_DEEPSPEED"), "true");
  EXPECT_EQ(variables.at("ACCELERATE_DEEPSPEED_ZERO_STAGE"), "3");
  EXPECT_EQ(variables.at("ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_DEVICE"), "none");
  EXPECT_EQ(variables.at("ACCELERATE_MIXED_PRECISION"), "bf16");
  c.gpus = 0;
  EXPECT_EQ(c.plan().environment.at("ACCELERATE_USE_CPU"), "true");
}

TEST(PlannedEnvironment, W10CardsWithoutPeerAccess) {
  Case c;
  DeviceInventory devices = machine(2);
  devices.names = {"NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4090"};
  const LaunchPlan plan = make_plan(c.params, devices, {});
  EXPECT_EQ(plan.environment.at("NCCL_P2P_DISABLE"), "1");
  EXPECT_EQ(plan.environment.at("NCCL_IB_DISABLE"), "1");
  ASSERT_EQ(plan.notes.size(), 1u);
  EXPECT_TRUE(plan.notes[0].starts_with("Using RTX 4000 series")) << plan.notes[0];
}

TEST(Plan, S60SlowLinksAreTold) {
  Case c;
  DeviceInventory devices = machine(2);
  devices.links = {{"X", "SYS"}, {"SYS", "X"}};
  const LaunchPlan plan = make_plan(c.params, devices, {});
  ASSERT_EQ(plan.notes.size(), 1u);
  EXPECT_TRUE(plan.notes[0].starts_with("GPUs 0 and 1 are not on the same PCIe root complex"))
      << plan.notes[0];
}

TEST(Plan, S61QuantizationOnTheCpuIsSkippedWithAWord) {
  Case c;
  c.params.quantization = "int4";
  EXPECT_EQ(c.plan().notes.back(),
            "Quantization int4 requested but CUDA not available. Skipping quantization.");
}

}  // namespace
}  // namespace aitraining::launch
