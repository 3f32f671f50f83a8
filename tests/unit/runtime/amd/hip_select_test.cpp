// Which kernel an AMD device runs: target ids, the order of selection, what falls through to what, and the
// errors.
#include "hip_devices.h"
#include "tests/unit/runtime/driver_deaths.h"

#include "fake_cuda.h"
#include "runtime/amd/hip_load.h"
#include "tests/paths.h"

#include <gtest/gtest.h>

#include <latch>
#include <thread>

namespace {

using namespace deepgen::hip_tests;

class HipSelect : public ::testing::Test {
protected:
  void SetUp() override {
    setenv("DEEPGEN_HIP_DRIVER", deepgen::paths::fake_hip, 1);
    setenv("DEEPGEN_CUDA_DRIVER", deepgen::paths::fake_cuda, 1);
    fake_cuda::reset({});
    fake_cuda::set_current(-1);
    fake_hip::reset({mi300x()});
  }
  static KernelText tuned_on(const std::string& device, KernelText k) {
    k.device = device;
    return k;
  }
};

TEST(HipTarget, MatchesProcessorAndTheSettingsThatTheCodeNames) {
  using deepgen::amd::runs_on;
  constexpr const char* mi300 = "gfx942:sramecc+:xnack-";
  EXPECT_TRUE(runs_on("gfx942", mi300)) << "code for any setting";
  EXPECT_TRUE(runs_on("gfx942:xnack-", mi300));
  EXPECT_TRUE(runs_on("gfx942:sramecc+", mi300));
  EXPECT_TRUE(runs_on("gfx942:sramecc+:xnack-", mi300));
  EXPECT_TRUE(runs_on("gfx942:xnack-:sramecc+", mi300)) << "in any order";
  EXPECT_FALSE(runs_on("gfx942:xnack+", mi300));
  EXPECT_FALSE(runs_on("gfx942:sramecc-", mi300));
  EXPECT_FALSE(runs_on("gfx942:sramecc+:xnack+", mi300));
  EXPECT_FALSE(runs_on("gfx94", mi300)) << "no beginning of a name";
  EXPECT_FALSE(runs_on("gfx9421", mi300));
  EXPECT_FALSE(runs_on("gfx90a", mi300));
  EXPECT_TRUE(runs_on("gfx1100", "gfx1100"));
  EXPECT_FALSE(runs_on("gfx1100:xnack-", "gfx1100")) << "a setting that the device does not have";
  EXPECT_FALSE(runs_on("gfx942:xnack", mi300)) << "no setting is the beginning of one";
  EXPECT_FALSE(runs_on("gfx942:xnack-+", mi300));
  EXPECT_TRUE(runs_on("gfx926", "gfx926:sramecc+:xnack-"))
      << "Hygon's, which no compiler here makes code for";
}

TEST_F(HipSelect, ExactNameThenArch) {
  const std::vector<KernelText> table = {kernel("other"), tuned_on("AMD Instinct MI325X", kernel("mi325x")),
                                         tuned_on("AMD Instinct MI300X", kernel("mi300x")),
                                         kernel("old", "gfx90a")};
  EXPECT_STREQ(Function(table).config(), "mi300x");
  fake_hip::reset({mi325x()});
  EXPECT_STREQ(Function(table).config(), "mi325x");
  fake_hip::reset({{.name = "AMD Instinct MI300A"}});
  EXPECT_STREQ(Function(table).config(), "other");
  fake_hip::reset({mi210()});
  EXPECT_STREQ(Function(table).config(), "old");
  fake_hip::reset({radeon()});
  Function f(table);
  EXPECT_EQ(f.config(), nullptr);
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_NO_KERNEL);
  EXPECT_EQ(calls("hipModuleLoadData"), 0) << "what cannot run is not tried";
}

TEST_F(HipSelect, SettingsOfTheTarget) {
  const std::vector<KernelText> table = {kernel("any"), kernel("replay", "gfx942:xnack+"),
                                         kernel("plain", "gfx942:xnack-")};
  EXPECT_STREQ(Function(table).config(), "plain") << "what names the device's setting goes ahead";
  fake_hip::reset({{.target = "gfx942:sramecc+:xnack+"}});
  EXPECT_STREQ(Function(table).config(), "replay");
  fake_hip::reset({{.target = "gfx942"}});
  EXPECT_STREQ(Function(table).config(), "any");
}

TEST_F(HipSelect, AlignmentFallsThrough) {
  KernelText wide = kernel("wide"), any = kernel("any"), unused = kernel("unused");
  wide.align_a = wide.align_b = wide.align_d = 16, wide.workspace = 512;
  any.align_a = any.align_b = any.align_d = 2, any.workspace = 1024;
  unused.workspace = 1 << 20;
  Function f({wide, any, unused});
  f.args.workspace = reinterpret_cast<void*>(0x100000), f.args.workspace_bytes = 1024;
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(launched(), "wide");
  EXPECT_EQ(f.workspace(), 1024u) << "of those that a call can take";
  EXPECT_EQ(calls("hipModuleLoadData"), 2) << "all that a call can take, no more, at the first call";
  f.args.a = reinterpret_cast<void*>(0x10008);
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(launched(), "any");
  f.args.a = reinterpret_cast<void*>(0x10000), f.args.ldb = 33;
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(launched(), "any");
  Function only_wide({wide});
  only_wide.args = f.args;
  EXPECT_EQ(only_wide.launch(), DEEPGEN_ERROR_NO_KERNEL);
}

TEST_F(HipSelect, LongRowsFallThrough) {
  KernelText offsets = kernel("offsets"), pointers = kernel("pointers");
  offsets.most_pitch = 4096;
  Function f({offsets, pointers});
  constexpr int64_t most = 2048; // of 2 bytes
  f.args.lda = f.args.ldb = most;
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(launched(), "offsets");
  EXPECT_EQ(calls("hipModuleLoadData"), 2) << "both, as calls with longer rows may come";
  for (int64_t* ld : {&f.args.lda, &f.args.ldb}) {
    *ld = most + 1;
    ASSERT_EQ(f.launch(), DEEPGEN_OK);
    EXPECT_EQ(launched(), "pointers");
    *ld = most;
  }
  Function only_offsets({offsets});
  only_offsets.args = f.args, only_offsets.args.lda = most + 1;
  EXPECT_EQ(only_offsets.launch(), DEEPGEN_ERROR_NO_KERNEL) << "no silent wrong reads";
}

TEST_F(HipSelect, WhatDoesNotLoadFallsThrough) {
  const std::vector<KernelText> table = {kernel("best"), kernel("second")};
  for (int result : {98, 200, 209, 218, 303}) {
    fake_hip::reset({mi300x()});
    fake_hip::state().code_results = {{"of_best", result}};
    EXPECT_STREQ(Function(table).config(), "second") << result;
  }
  KernelText missing = kernel("missing");
  missing.launches[0].entry = "other_entry";
  EXPECT_STREQ(Function({missing, table[1]}).config(), "second");
  KernelText wrong = kernel("wrong");
  wrong.cubin = kernel("wrong", "gfx90a").cubin; // not what its target says
  fake_hip::reset({mi300x()});
  EXPECT_STREQ(Function({wrong, table[1]}).config(), "second");
  EXPECT_EQ(fake_hip::state().complaints, std::vector<std::string>{"code for gfx90a"});
}

TEST_F(HipSelect, NothingLoads) {
  fake_hip::state().code_results = {{"of_", 209}};
  Function f({kernel("one"), kernel("two")});
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_DRIVER);
  const char* text = nullptr;
  EXPECT_EQ(deepgen_last_driver_error(&text), 209);
  EXPECT_STREQ(text, "no kernel image is available for execution on the device");
  EXPECT_EQ(f.config(), nullptr);
  EXPECT_EQ(f.workspace(), 0u);
  fake_hip::state().code_results.clear();
  EXPECT_EQ(f.launch(), DEEPGEN_OK) << "a failure is not remembered";
}

TEST_F(HipSelect, TheDevicesTroubleIsNotTheKernels) {
  constexpr int kOutOfMemory = 2;
  fake_hip::state().code_results = {{"of_best", kOutOfMemory}};
  Function f({kernel("best"), kernel("second")});
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_DRIVER) << "it would keep the second kernel for ever";
  EXPECT_EQ(deepgen_last_driver_error(nullptr), kOutOfMemory);
  fake_hip::state().code_results.clear();
  EXPECT_STREQ(f.config(), "best");
}

TEST_F(HipSelect, WithoutADevice) {
  fake_hip::reset({});
  Function f({kernel("one")});
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_NO_CONTEXT);
  EXPECT_EQ(f.prepare(), DEEPGEN_ERROR_NO_CONTEXT);
  EXPECT_EQ(f.config(), nullptr);
  EXPECT_EQ(f.workspace(), 0u);
  fake_hip::reset({mi300x()});
  for (int result : {3, 101, 201}) { // the GPU's kernel driver is missing or may not be opened
    fake_hip::state().results["hipGetDevice"] = result;
    EXPECT_EQ(f.launch(), DEEPGEN_ERROR_NO_CONTEXT) << result;
  }
  fake_hip::state().results.clear();
  EXPECT_EQ(f.launch(), DEEPGEN_OK);
}

TEST_F(HipSelect, DevicesHaveModulesOfTheirOwn) {
  fake_hip::reset({mi300x(), mi325x(), mi210()});
  Function f({kernel("cdna3"), kernel("cdna2", "gfx90a")});
  for (int device : {0, 1, 0, 2, 1}) {
    ASSERT_EQ(hipSetDevice(device), 0);
    ASSERT_EQ(f.launch(), DEEPGEN_OK) << device;
    EXPECT_EQ(fake_hip::state().launches.back().device, device);
    EXPECT_EQ(launched(), device == 2 ? "cdna2" : "cdna3");
  }
  EXPECT_EQ(calls("hipModuleLoadData"), 3) << "a module belongs to one device";
  EXPECT_TRUE(fake_hip::state().complaints.empty());
}

/// As when a library is unloaded: the modules of all devices go, and a call would begin anew.
TEST_F(HipSelect, UnregisteringUnloadsTheModules) {
  fake_hip::reset({mi300x(), mi325x()});
  Function f({kernel("cdna3")});
  for (int round = 1; round <= 3; ++round) {
    for (int device : {0, 1}) {
      ASSERT_EQ(hipSetDevice(device), 0);
      ASSERT_EQ(f.launch(), DEEPGEN_OK);
    }
    EXPECT_EQ(calls("hipModuleLoadData"), 2 * round);
    deepgen_unregister(&f.function(), 1);
    EXPECT_EQ(calls("hipModuleUnload"), 2 * round);
    EXPECT_EQ(*f.function().devices, nullptr);
  }
}

TEST_F(HipSelect, EightThreadsCallFirst) {
  for (int round = 0; round < 50; ++round) {
    fake_hip::reset({mi300x(), mi325x()});
    KernelText wide = kernel("wide");
    wide.align_a = 16;
    Function f({wide, kernel("any")});
    std::latch start(8);
    std::vector<std::thread> threads;
    std::atomic<int> failures{0};
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        hipSetDevice(t % 2);
        start.arrive_and_wait();
        failures += f.launch() != DEEPGEN_OK;
      });
    for (std::thread& t : threads) t.join();
    ASSERT_EQ(failures, 0);
    ASSERT_EQ(calls("hipModuleLoadData"), 4);
    ASSERT_EQ(calls("hipDeviceGetName"), 2) << "one choice a device";
    ASSERT_EQ(fake_hip::state().launches.size(), 8u);
  }
}

TEST_F(HipSelect, MalformedDescriptions) {
  auto refused = [](auto change) {
    KernelText k = kernel("bad");
    change(k);
    return Function({k}).launch() == DEEPGEN_ERROR_ARGUMENT;
  };
  EXPECT_FALSE(refused([](KernelText&) {}));
  EXPECT_TRUE(refused([](KernelText& k) { k.cubin = ""; }));
  EXPECT_TRUE(refused([](KernelText& k) { k.target = "sm_90"; }));
  EXPECT_TRUE(refused([](KernelText& k) { k.args = {DEEPGEN_ARG_COUNT}; }));
  EXPECT_TRUE(refused([](KernelText& k) { k.args = {DEEPGEN_ARG_MAP_A}; })) << "tensor maps are NVIDIA's";
  EXPECT_TRUE(refused([](KernelText& k) { k.align_b = 3; }));
  EXPECT_TRUE(refused([](KernelText& k) { k.launches.clear(); }));
  EXPECT_TRUE(refused([](KernelText& k) { k.launches[0].cluster[0] = 2; })) << "there are no clusters";
  EXPECT_TRUE(refused([](KernelText& k) { k.launches[0].flags = DEEPGEN_LAUNCH_DEPENDENT; }));
  EXPECT_TRUE(refused([](KernelText& k) { k.launches[0].grid[0] = 1u << 25; })) << "2^32 threads";
  EXPECT_TRUE(refused([](KernelText& k) { k.launches[0].block[1] = 16; })) << "2048 threads";
}

TEST_F(HipSelect, KernelsOfBothVendorsInOneTable) {
  KernelText cuda = deepgen::cuda_tests::kernel("cuda", "sm_80");
  Function f({cuda, kernel("hip")});
  EXPECT_STREQ(f.config(), "hip") << "no CUDA device is there";
  EXPECT_EQ(f.launch(), DEEPGEN_OK);
  fake_cuda::reset({{.name = "NVIDIA A100", .major = 8}});
  EXPECT_STREQ(f.config(), "hip") << "and none is current here";
  fake_cuda::set_current(0);
  EXPECT_STREQ(f.config(), "cuda");
  EXPECT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(fake_cuda::state().launches.size(), 1u);
  EXPECT_EQ(fake_hip::state().launches.size(), 1u);
  fake_hip::reset({});
  fake_cuda::set_current(-1);
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_NO_CONTEXT);
}

[[noreturn]] void launch_and_exit(const char* path) {
  setenv("DEEPGEN_HIP_DRIVER", path, 1);
  setenv("FAKE_HIP_DEVICES", "gfx942:sramecc+:xnack- AMD Instinct MI300X", 1);
  setenv("FAKE_HIP_TRACE", "1", 1);
  Function f({kernel("one")});
  deepgen::tests::launch_and_exit(f);
}

TEST(HipDriverDeathTest, MissingOldOrOfAnotherVersion) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto no_driver = ::testing::ExitedWithCode(DEEPGEN_ERROR_NO_DRIVER);
  EXPECT_EXIT(launch_and_exit("/nowhere/libamdhip64.so"), no_driver, "");
  EXPECT_EXIT(launch_and_exit("libm.so.6"), no_driver, "") << "which has none of the entry points";
  EXPECT_EXIT(launch_and_exit(deepgen::paths::fake_hip_rocm5), ::testing::ExitedWithCode(DEEPGEN_OK),
              "launch of deepgen_kernel for gfx942 on gfx942:sramecc.:xnack-");
  EXPECT_EXIT(launch_and_exit(deepgen::paths::fake_hip), ::testing::ExitedWithCode(DEEPGEN_OK),
              "launch of deepgen_kernel");
}

/// `both`: a function with kernels for both vendors, of
/// which the driver of the other one cannot be loaded.
[[noreturn]] void launch_on_a_short_host(__rlimit_resource what, bool both) {
  deepgen::tests::Steps steps;
  {
    const deepgen::tests::LibraryCopy copy(both ? deepgen::paths::fake_cuda : deepgen::paths::fake_hip,
                                           !both);
    setenv("DEEPGEN_HIP_DRIVER", both ? deepgen::paths::fake_hip : copy.path(), 1);
    setenv("DEEPGEN_CUDA_DRIVER", copy.path(), 1);
    setenv("FAKE_HIP_DEVICES", "gfx942:sramecc+:xnack- AMD Instinct MI300X", 1);
    fake_hip::reset({mi300x()});
    fake_cuda::reset({{.name = "NVIDIA A100", .major = 8}});
    fake_cuda::set_current(0);
    std::vector<KernelText> table = {kernel("one")};
    if (both) table.push_back(deepgen::cuda_tests::kernel("cuda", "sm_80"));
    Function f(table);
    deepgen::tests::call_on_a_short_host(f, what, steps);
    steps.expect(f.launch() == DEEPGEN_OK);
    steps.expect(f.config() == std::string_view(both ? "cuda" : "one"));
  }
  std::_Exit(steps.wrong());
}

TEST(HipDriverDeathTest, WhatTheHostCannotLoadNowIsTriedAgain) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(launch_on_a_short_host(RLIMIT_NOFILE, false), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(launch_on_a_short_host(RLIMIT_NOFILE, true), ::testing::ExitedWithCode(0), "");
#ifndef __SANITIZE_ADDRESS__ // which needs address space of its own
  EXPECT_EXIT(launch_on_a_short_host(RLIMIT_AS, false), ::testing::ExitedWithCode(0), "");
#endif
}

} // namespace
