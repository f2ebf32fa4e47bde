// S34, S54, S55, S60: which GPUs are seen, and what is known of them.
#include "aitraining/launch/devices.h"

#include <dlfcn.h>

#include <cstdlib>

#include <gtest/gtest.h>

#include "aitraining/core/error.h"
#include "cuda_driver.h"
#include "visible_devices.h"

namespace aitraining::launch {
namespace {

constexpr const char* kFourGpus =
    "NVIDIA H200|GPU-aaa10000-0000-0000-0000-000000000001|143771|143000|9.0|0000:18:00.0;"
    "NVIDIA H200|GPU-aab20000-0000-0000-0000-000000000002|143771|100|9.0|0000:2a:00.0;"
    "NVIDIA H200|GPU-ccc30000-0000-0000-0000-000000000003|143771|143000|9.0|0000:3a:00.0;"
    "NVIDIA H200|GPU-ddd40000-0000-0000-0000-000000000004|143771|143000|9.0|0000:5d:00.0";

// A library that is loaded already under that name is the one that the probe's dlopen finds.
class Preloaded {
 public:
  explicit Preloaded(const std::string& file)
      : handle_(dlopen((std::string(AITRAINING_FAKE_NVIDIA) + "/" + file).c_str(),
                       RTLD_NOW | RTLD_LOCAL)) {}
  ~Preloaded() {
    if (handle_) dlclose(handle_);
  }
  bool there() const { return handle_ != nullptr; }

 private:
  void* handle_;
};

class Devices : public ::testing::Test {
 protected:
  void SetUp() override {
    clear();
    ASSERT_TRUE(nvml_.there() && cuda_.there()) << dlerror();
    setenv("FAKE_GPUS", kFourGpus, 1);
  }
  void TearDown() override { clear(); }
  static void clear() {
    for (const char* name : {"FAKE_GPUS", "FAKE_LINKS", "FAKE_CUDA_ORDER", "CUDA_VISIBLE_DEVICES",
                             "CUDA_DEVICE_ORDER"})
      unsetenv(name);
  }
  static std::vector<std::string> uuids() {
    std::vector<std::string> all;
    for (const Gpu& gpu : probe_devices().gpus) all.push_back(gpu.uuid.substr(0, 8));
    return all;
  }
  using Names = std::vector<std::string>;

 private:
  Preloaded nvml_{"nvml/libnvidia-ml.so.1"}, cuda_{"cuda/libcuda.so.1"};
};

TEST_F(Devices, S34EveryGpuIsDescribed) {
  const DeviceInventory found = probe_devices();
  EXPECT_EQ(found.cuda_devices, 4);
  EXPECT_EQ(found.driver, "580.95.05");
  EXPECT_EQ(found.cuda, "13.0");
  ASSERT_EQ(found.gpus.size(), 4u);
  const Gpu& gpu = found.gpus[1];
  EXPECT_EQ(gpu.name, "NVIDIA H200");
  EXPECT_EQ(gpu.uuid, "GPU-aab20000-0000-0000-0000-000000000002");
  EXPECT_EQ(gpu.memory_total, 143771ull << 20);
  EXPECT_EQ(gpu.memory_free, 100ull << 20);
  EXPECT_EQ(gpu.compute_capability, "9.0");
  EXPECT_EQ(gpu.pci_bus, "0000:2a:00.0");
  EXPECT_FALSE(gpu.mig);
}

TEST_F(Devices, S54ListedDevicesInTheirOrder) {
  setenv("CUDA_VISIBLE_DEVICES", "3,0", 1);
  EXPECT_EQ(uuids(), (Names{"GPU-ddd4", "GPU-aaa1"}));
  setenv("CUDA_VISIBLE_DEVICES", "GPU-ccc3,GPU-aab", 1);
  EXPECT_EQ(uuids(), (Names{"GPU-ccc3", "GPU-aab2"}));
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  EXPECT_EQ(uuids(), Names{});
  setenv("CUDA_VISIBLE_DEVICES", "-1", 1);
  EXPECT_EQ(probe_devices().cuda_devices, 0);
}

TEST_F(Devices, MigSliceByName) {
  setenv("FAKE_GPUS",
         "NVIDIA H200|GPU-aaa10000-0000-0000-0000-000000000001|80000|80000|9.0|0000:18:00.0;"
         "NVIDIA "
         "H200|GPU-bbb10000-0000-0000-0000-000000000001|80000|0|9.0|0000:2a:00.0|MIG-one,MIG-two",
         1);
  setenv("CUDA_VISIBLE_DEVICES", "MIG-two,MIG-one", 1);
  const DeviceInventory found = probe_devices();
  ASSERT_EQ(found.gpus.size(), 1u);  // CUDA gives a process one slice
  EXPECT_EQ(found.gpus[0].uuid, "MIG-two");
  EXPECT_TRUE(found.gpus[0].mig);
  EXPECT_EQ(found.gpus[0].memory_total, 10000ull << 20);
  EXPECT_EQ(found.gpus[0].pci_bus, "0000:2a:00.0");
  unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(uuids(), Names{"MIG-one"});
}

TEST_F(Devices, GpusOfDifferentKindsAreNumberedByTheDriver) {
  setenv("FAKE_GPUS",
         "Small|GPU-aaa10000-0000-0000-0000-000000000001|8000|8000|7.5|0000:18:00.0;"
         "Large|GPU-bbb10000-0000-0000-0000-000000000001|80000|80000|9.0|0000:2a:00.0",
         1);
  setenv("FAKE_CUDA_ORDER", "1,0", 1);
  EXPECT_EQ(probe_devices().names, (Names{"Large", "Small"}));
  setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
  EXPECT_EQ(probe_devices().names, (Names{"Small", "Large"}));
}

TEST_F(Devices, DriverAloneTellsTheSame) {
  const DriverView view = ask_cuda_driver();
  EXPECT_EQ(view.version, "12.8");
  ASSERT_EQ(view.gpus.size(), 4u);
  EXPECT_EQ(view.gpus[3].uuid, "GPU-ddd40000-0000-0000-0000-000000000004");
  EXPECT_EQ(view.gpus[3].compute_capability, "9.0");
  EXPECT_EQ(view.gpus[3].memory_total, 143771ull << 20);
}

TEST_F(Devices, S60TopologyAndItsWarning) {
  setenv("FAKE_LINKS", "X,NV18,SYS,SYS;NV18,X,SYS,SYS;SYS,SYS,X,PHB;SYS,SYS,PHB,X", 1);
  const Topology links = probe_devices().links;
  ASSERT_EQ(links.size(), 4u);
  EXPECT_EQ(links[0], (Names{"X", "NV18", "SYS", "SYS"}));
  EXPECT_EQ(links[2], (Names{"SYS", "SYS", "X", "PHB"}));
  EXPECT_EQ(slow_link_warning(links, 2), "");
  EXPECT_EQ(slow_link_warning(links, 4),
            "GPUs 0 and 2 are not on the same PCIe root complex and have no NVLink; expect slow "
            "gradient sync. Choose "
            "others with CUDA_VISIBLE_DEVICES.");
  EXPECT_EQ(slow_link_warning({{"X", "PHB"}, {"PHB", "X"}}, 2), "");
  EXPECT_NE(slow_link_warning({{"X", "NODE"}, {"NODE", "X"}}, 2), "");
}

TEST(VisibleDevices, FollowCudasRules) {
  const std::vector<DeviceUuids> four{{"GPU-aaa1"}, {"GPU-aab2"}, {"GPU-ccc3"}, {"GPU-ddd4"}};
  const auto numbers = [&](const char* variable) {
    std::vector<int> all;
    for (const ChosenDevice& chosen : visible_devices(variable, four)) all.push_back(chosen.device);
    return all;
  };
  using List = std::vector<int>;
  EXPECT_EQ(numbers(nullptr), (List{0, 1, 2, 3}));
  EXPECT_EQ(numbers(""), List{});
  EXPECT_EQ(numbers("-1"), List{});
  EXPECT_EQ(numbers("0,1"), (List{0, 1}));
  EXPECT_EQ(numbers(" 3 , 0"), (List{3, 0}));
  EXPECT_EQ(numbers("2,9,1"), List{2});
  EXPECT_EQ(numbers("1,-1,0"), List{1});
  EXPECT_EQ(numbers("0,x,1"), List{0});
  EXPECT_EQ(numbers("1a,2b"), (List{1, 2}));  // as strtoul reads them
  EXPECT_EQ(numbers("1,1,0"), List{});
  EXPECT_EQ(numbers("GPU-ccc3,GPU-d"), (List{2, 3}));
  EXPECT_EQ(numbers("GPU-ccc3,GPU-ccc3"), List{});
  EXPECT_EQ(numbers("GPU-ccc3,0"), List{2});
  EXPECT_EQ(numbers("0,GPU-ccc3"), List{0});
  EXPECT_EQ(numbers("GPU-aa,0"), List{});
  EXPECT_EQ(numbers("MIG-1234"), List{});
  EXPECT_EQ(visible_devices(nullptr, {}), std::vector<ChosenDevice>{});
}

class Assumed : public Devices {};

TEST_F(Assumed, MachineThatIsNotHere) {
  DeviceInventory here;
  here.cores = 6;
  DeviceInventory assumed = assume_devices("8x80GiB", here);
  EXPECT_EQ(assumed.cuda_devices, 8);
  EXPECT_EQ(assumed.gpus[7].memory_total, 80ull << 30);
  EXPECT_EQ(assumed.cores, 6);
  EXPECT_EQ(assume_devices("2 x 24GB", here).gpus[1].memory_free, 24000000000ull);
  EXPECT_EQ(assume_devices("3", here).gpus[0].memory_total, 0u);
  EXPECT_EQ(assume_devices("8x80", here).gpus[0].memory_total, 80ull << 30);
  EXPECT_EQ(assume_devices("0", here).cuda_devices, 0);
  setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
  EXPECT_EQ(assume_devices("4", here).cuda_devices, 2);
  for (const char* wrong :
       {"", "x", "-1", "8x", "8*80GiB", "8xGiB", "8x80PiB", "99999", "2x0GiB", "2xnanGiB"})
    EXPECT_THROW(assume_devices(wrong, here), UserError) << wrong;
}

}  // namespace
}  // namespace aitraining::launch
