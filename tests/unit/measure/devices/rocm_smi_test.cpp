// What ROCm's management library tells, and where it is looked for. The library is
// tests/fake_hip/fake_rocm_smi.cpp.
#include "tests/unit/runtime/amd/hip_devices.h"

#include "measure/devices/cuda_devices.h"
#include "measure/devices/rocm_smi.h"
#include "measure/gpu/cuda_bench.h"
#include "runtime/amd/hip_driver.h"
#include "tests/paths.h"
#include "tests/unit/environment.h"

#include <gtest/gtest.h>

namespace deepgen::rocm_smi_test {
namespace {

constexpr const char *kFirst = "GPU-fa4e000000000000", *kSecond = "GPU-fa4e000000000001";
constexpr uint64_t kPowerLimit = 1 << 2, kHotSpot = uint64_t(1) << 36, kUnknown = ~uint64_t(0);

std::string setting(uint64_t reasons, int version) {
  char text[64];
  std::snprintf(text, sizeof text, "1890 0x%llx %d 2", static_cast<unsigned long long>(reasons), version);
  return text;
}

std::optional<RocmSmi> open(const std::string& uuid) {
  return RocmSmi::open(reinterpret_cast<const void*>(amd::driver()->launch), uuid);
}

class RocmSmiTest : public ::testing::Test {
protected:
  void SetUp() override {
    setenv("DEEPGEN_HIP_DRIVER", paths::fake_hip, 1);
    fake_hip::reset({hip_tests::mi300x(), hip_tests::radeon()});
  }
  void TearDown() override { cuda::use(cuda::Platform::cuda); }
};

TEST_F(RocmSmiTest, AClockThatHeatLowers) {
  const Environment set("FAKE_ROCM_SMI", setting(kHotSpot, 3).c_str());
  const auto smi = open(kFirst);
  ASSERT_TRUE(smi);
  EXPECT_EQ(smi->state().megahertz, 1890);
  EXPECT_TRUE(smi->state().throttled);
  EXPECT_FALSE(smi->state().capped);
  EXPECT_EQ(smi->power_limit_watts(), 750);
  EXPECT_EQ(smi->compute_processes(), 2);
  EXPECT_EQ(smi->driver_version(), "6.10.5");
}

TEST_F(RocmSmiTest, ThePowerLimitIsNoDisturbance) {
  const Environment set("FAKE_ROCM_SMI", setting(kPowerLimit, 3).c_str());
  const auto smi = open(kFirst);
  ASSERT_TRUE(smi);
  EXPECT_FALSE(smi->state().throttled);
  EXPECT_TRUE(smi->state().capped);
}

/// Firmware of MI300 tells averages in the older part of the structure, and no reasons; older firmware has no
/// reasons.
TEST_F(RocmSmiTest, WhatTheFirmwareDoesNotTellIsNotClaimed) {
  for (const auto& [reasons, version] :
       {std::pair(kUnknown, 4), std::pair(kUnknown, 3), std::pair(kHotSpot, 1)}) {
    const Environment set("FAKE_ROCM_SMI", setting(reasons, version).c_str());
    const auto smi = open(kFirst);
    ASSERT_TRUE(smi);
    EXPECT_EQ(smi->state().megahertz, version == 4 ? 1790 : 1890);
    EXPECT_FALSE(smi->state().throttled);
    EXPECT_FALSE(smi->state().capped);
  }
}

TEST_F(RocmSmiTest, DevicesAreFoundByNameOrPlace) {
  const Environment set("FAKE_ROCM_SMI", setting(0, 3).c_str());
  ASSERT_TRUE(open(kSecond));
  EXPECT_EQ(open(kSecond)->state().megahertz, 0) << "that device tells nothing";
  EXPECT_EQ(open(kSecond)->compute_processes(), 1);
  EXPECT_EQ(open("PCI-0002:04:05.1")->compute_processes(), 2);
  EXPECT_FALSE(open("PCI-0002:05:05.1"));
  EXPECT_FALSE(open("GPU-fa4e000000000002"));
}

/// As on a machine without the library: only what HIP tells.
TEST_F(RocmSmiTest, RecordsSayWhatTheLibraryTells) {
  cuda::use(cuda::Platform::hip);
  const std::vector<Device> devices = cuda::devices(cuda::Platform::hip);
  ASSERT_FALSE(devices.empty());
  EXPECT_FALSE(open(kFirst));
  cuda::Surroundings around = cuda::surroundings(devices[0]);
  EXPECT_EQ(around.power_limit_watts, 0);
  EXPECT_EQ(around.driver.find(", driver"), std::string::npos) << around.driver;
  EXPECT_NE(around.unwatched.find("ROCm SMI"), std::string::npos) << around.unwatched;
  EXPECT_FALSE(around.alone()) << "it cannot be known";
  const Environment set("FAKE_ROCM_SMI", setting(0, 3).c_str());
  around = cuda::surroundings(devices[0]);
  EXPECT_EQ(around.power_limit_watts, 750);
  EXPECT_EQ(around.other_processes, 2);
  EXPECT_EQ(around.unwatched, "");
  EXPECT_NE(around.driver.find(", driver 6.10.5"), std::string::npos) << around.driver;
}

} // namespace
} // namespace deepgen::rocm_smi_test
