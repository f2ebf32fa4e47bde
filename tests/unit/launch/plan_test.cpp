// The launcher's decision table.
#include <gtest/gtest.h>

#include "aitraining/core/error.h"
#include "aitraining/launch/launch.h"

namespace aitraining::launch {
namespace {

struct Row {
  const char* device;
  int gpus, cores;
  std::optional<int> forced;
  int ranks;
  const char* chosen;
  const char* engine;
  int threads;
};

config::TrainingParams params_with(const std::string& device) {
  config::TrainingParams params;
  params.device = device;
  return params;
}

DeviceInventory inventory(int gpus, int cores, bool fast_bf16 = true) {
  DeviceInventory devices;
  devices.cuda_devices = gpus;
  devices.names.assign(static_cast<size_t>(gpus), "GPU");
  devices.cores = cores;
  devices.fast_bf16 = fast_bf16;
  if (gpus > 0) devices.driver = "580.1";
  return devices;
}

std::string refusal(const config::TrainingParams& params, const DeviceInventory& devices,
                    const LaunchInputs& inputs) {
  try {
    make_plan(params, devices, inputs);
  } catch (const UserError& e) {
    return e.what();
  }
  return "accepted";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Plan, RanksDeviceEngineAndThreads) {
  const Row rows[] = {
      {"auto", 0, 8, {}, 1, "cpu", "single", 8}, {"auto", 1, 8, {}, 1, "cuda", "single", 8},
      {"auto", 3, 8, {}, 3, "cuda", "ddp", 2},   {"auto", 8, 16, {}, 8, "cuda", "ddp", 2},
      {"auto", 8, 4, {}, 8, "cuda", "ddp", 1},   {"cpu", 4, 8, {}, 1, "cpu", "single", 8},
      {"cpu", 4, 8, 4, 4, "cpu", "ddp", 2},      {"auto", 0, 2, 2, 2, "cpu", "ddp", 1},
      {"auto", 0, 2, 4, 4, "cpu", "ddp", 1},     {"auto", 4, 8, 2, 2, "cuda", "ddp", 4},
      {"auto", 4, 8, 1, 1, "cuda", "single", 8}, {"cuda", 2, 6, {}, 2, "cuda", "ddp", 3},
      {"auto", 4, 8, 0, 1, "cpu", "single", 8},  {"auto", 4, 8, -1, 1, "cpu", "single", 8},
  };
  for (const Row& row : rows) {
    const LaunchPlan plan =
        make_plan(params_with(row.device), inventory(row.gpus, row.cores), {row.forced});
    SCOPED_TRACE(testing::Message() << row.device << " gpus " << row.gpus << " cores " << row.cores
                                    << " forced " << row.forced.value_or(-99));
    EXPECT_EQ(plan.ranks, row.ranks);
    EXPECT_EQ(plan.device, row.chosen);
    EXPECT_EQ(plan.engine, row.engine);
    EXPECT_EQ(plan.threads_per_rank, row.threads);
  }
}

TEST(Plan, EightGpusNeverChooseAnotherEngineByThemselves) {
  config::TrainingParams params = params_with("auto");
  EXPECT_EQ(make_plan(params, inventory(8, 8), {}).engine, "ddp");
  params.distributed_backend = "ddp";
  EXPECT_EQ(make_plan(params, inventory(8, 8), {}).engine, "ddp");
  EXPECT_EQ(make_plan(params, inventory(1, 8), {}).engine, "single");
}

TEST(Plan, MoreRanksThanGpusNamesBothCounts) {
  const std::string message = refusal(params_with("auto"), inventory(2, 8), {4});
  EXPECT_TRUE(has(message, "4 ranks were asked for, but there are 2 visible GPU(s)")) << message;
  EXPECT_TRUE(has(message, "--nproc-per-node")) << message;
}

TEST(Plan, MoreRanksThanCoresIsAWarning) {
  const LaunchPlan plan = make_plan(params_with("cpu"), inventory(0, 2), {5});
  ASSERT_EQ(plan.notes.size(), 1u);
  EXPECT_EQ(plan.notes[0], "5 ranks on 2 core(s): ranks share cores, which is slow");
}

TEST(Plan, WithoutAGpuItIsSaidUnlessTheCpuWasAskedFor) {
  const LaunchPlan plan = make_plan(params_with("auto"), inventory(0, 2), {});
  EXPECT_EQ(plan.notes, std::vector<std::string>{
                            "No GPU found. Forcing training on CPU. This will be super slow!"});
  EXPECT_TRUE(make_plan(params_with("cpu"), inventory(0, 2), {}).notes.empty());
  EXPECT_TRUE(has(refusal(params_with("cuda"), inventory(0, 2), {}),
                  "no GPU (no NVIDIA driver was found)"));
}

TEST(Plan, Precision) {
  config::TrainingParams params = params_with("cpu");
  LaunchPlan plan = make_plan(params, inventory(0, 2), {});
  EXPECT_EQ(plan.precision, "fp32");
  EXPECT_EQ(plan.precision_reason, "mixed_precision is not set");
  params.mixed_precision = "bf16";
  EXPECT_EQ(make_plan(params, inventory(0, 2, true), {}).precision_reason, "as asked");
  plan = make_plan(params, inventory(0, 2, false), {});
  EXPECT_EQ(plan.precision, "bf16");
  EXPECT_TRUE(has(plan.precision_reason, "neither AVX512_BF16 nor AMX")) << plan.precision_reason;
  params.mixed_precision = "fp16";
  const std::string message = refusal(params, inventory(0, 2), {});
  EXPECT_TRUE(has(message, "fp16 was asked for, but the run is on the CPU (no GPU")) << message;
  EXPECT_TRUE(has(message, "--mixed-precision bf16")) << message;
  EXPECT_TRUE(has(refusal(params_with("auto"), inventory(1, 2), {}), "accepted"));
}

}  // namespace
}  // namespace aitraining::launch
