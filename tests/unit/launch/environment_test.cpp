#include "environment.h"

#include <algorithm>
#include <cstdlib>

#include <gtest/gtest.h>

#include "aitraining/core/error.h"
#include "aitraining/launch/launch.h"
#include "rank_process.h"
#include "visible_devices.h"

namespace aitraining::launch {
namespace {

class Environment : public ::testing::Test {
 protected:
  void SetUp() override { TearDown(); }
  void TearDown() override {
    for (const std::string& name : rank_variables()) unsetenv(name.c_str());
    for (const char* name :
         {"AUTOTRAIN_FORCE_NUM_PROCESSES", "AUTOTRAIN_FORCE_NUM_GPUS", "OMP_NUM_THREADS"})
      unsetenv(name);
  }
  static void set(const char* name, const char* value) { setenv(name, value, 1); }
};

TEST_F(Environment, ForcedProcesses) {
  config::TrainingParams params;
  EXPECT_EQ(read_launch_inputs(params).forced_processes, std::nullopt);
  set("AUTOTRAIN_FORCE_NUM_GPUS", "3");
  LaunchInputs inputs = read_launch_inputs(params);
  EXPECT_EQ(inputs.forced_processes, 3);
  ASSERT_EQ(inputs.notes.size(), 1u);
  EXPECT_EQ(inputs.notes[0],
            "AUTOTRAIN_FORCE_NUM_GPUS is deprecated; it controls launcher process count, not GPU "
            "visibility. Use "
            "AUTOTRAIN_FORCE_NUM_PROCESSES instead. To restrict visible devices, set "
            "CUDA_VISIBLE_DEVICES.");
  set("AUTOTRAIN_FORCE_NUM_PROCESSES", "2");
  inputs = read_launch_inputs(params);
  EXPECT_EQ(inputs.forced_processes, 2);
  EXPECT_TRUE(inputs.notes.empty());
  params.nproc_per_node = 5;
  EXPECT_EQ(read_launch_inputs(params).forced_processes, 5);
}

TEST_F(Environment, UnparsableCountIsAnError) {
  set("AUTOTRAIN_FORCE_NUM_PROCESSES", "two");
  EXPECT_THROW(read_launch_inputs({}), UserError);
}

TEST_F(Environment, LeftoverVariablesAreOneNote) {
  set("RANK", "1");
  set("WORLD_SIZE", "8");
  set("MASTER_PORT", "29500");
  EXPECT_EQ(
      read_launch_inputs({}).notes,
      std::vector<std::string>{
          "RANK, WORLD_SIZE, MASTER_PORT left in the environment: ignored, since this command "
          "starts its own ranks"});
  unsetenv("RANK");
  unsetenv("WORLD_SIZE");
  EXPECT_TRUE(read_launch_inputs({}).notes.empty());  // a port alone is the user's choice
}

TEST_F(Environment, RankIdentity) {
  EXPECT_EQ(read_rank_environment().world_size, 1);
  set("RANK", "1");
  set("LOCAL_RANK", "1");
  set("WORLD_SIZE", "4");
  EXPECT_THROW(read_rank_environment(), UserError);
  set("LOCAL_WORLD_SIZE", "4");
  set("MASTER_ADDR", "127.0.0.1");
  EXPECT_THROW(read_rank_environment(), UserError);
  set("MASTER_PORT", "1234");
  const RankEnvironment rank = read_rank_environment();
  EXPECT_EQ(rank.rank, 1);
  EXPECT_EQ(rank.local_rank, 1);
  EXPECT_EQ(rank.world_size, 4);
  EXPECT_EQ(rank.master_port, 1234);
  EXPECT_EQ(rank.store_listen_fd, -1);
  set("RANK", "4");
  EXPECT_THROW(read_rank_environment(), UserError);
}

TEST_F(Environment, RanksGetACleanCopy) {
  set("RANK", "7");
  set("TORCHELASTIC_RUN_ID", "x");
  set("AITRAINING_TEST_KEPT", "yes");
  RankSetup setup{.environment = {.rank = 1,
                                  .local_rank = 1,
                                  .world_size = 2,
                                  .local_world_size = 2,
                                  .master_port = 99},
                  .threads = 3};
  const auto count = [&](const std::string& entry) {
    const auto all = rank_environment(setup);
    return std::ranges::count(all, entry);
  };
  for (const char* entry :
       {"RANK=1", "LOCAL_RANK=1", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1",
        "MASTER_PORT=99", "OMP_NUM_THREADS=3", "AITRAINING_TEST_KEPT=yes"}) {
    EXPECT_EQ(count(entry), 1) << entry;
  }
  EXPECT_EQ(count("RANK=7"), 0);
  EXPECT_EQ(count("TORCHELASTIC_RUN_ID=x"), 0);
  set("OMP_NUM_THREADS", "11");
  EXPECT_EQ(count("OMP_NUM_THREADS=11"), 1);
  EXPECT_EQ(count("OMP_NUM_THREADS=3"), 0);
  unsetenv("AITRAINING_TEST_KEPT");
}

TEST(CpuLimit, ReadsCgroupText) {
  EXPECT_EQ(cpu_limit("max 100000"), 0);
  EXPECT_EQ(cpu_limit("200000 100000"), 2);
  EXPECT_EQ(cpu_limit("150000 100000\n"), 1.5);
  EXPECT_EQ(cpu_limit(""), 0);
}

TEST(Probe, AnswersOnAnyMachine) {
  const DeviceInventory devices = probe_devices();
  EXPECT_GE(devices.cores, 1);
  EXPECT_EQ(static_cast<int>(devices.names.size()), devices.cuda_devices);
}

}  // namespace
}  // namespace aitraining::launch
