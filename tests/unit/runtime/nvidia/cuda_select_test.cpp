// Which kernel a device runs: the order of selection, what falls through to what, and the errors.
#include "fake_devices.h"
#include "tests/paths.h"
#include "tests/unit/runtime/cuda_test_function.h"
#include "tests/unit/runtime/driver_deaths.h"

#include <gtest/gtest.h>

#include <latch>
#include <thread>

namespace {

using namespace deepgen::cuda_tests;

class CudaSelect : public ::testing::Test {
protected:
  void SetUp() override {
    setenv("DEEPGEN_CUDA_DRIVER", deepgen::paths::fake_cuda, 1);
    use({h100()});
  }
  static void use(std::vector<fake_cuda::Device> devices) {
    fake_cuda::reset(std::move(devices));
    fake_cuda::set_current(0);
  }
  static std::string launched() {
    const auto& launches = fake_cuda::state().launches;
    return launches.empty() ? "" : launches.back().image;
  }
  static KernelText tuned_on(const std::string& device, KernelText k) {
    k.device = device;
    return k;
  }
};

TEST_F(CudaSelect, ExactNameThenArchThenPtx) {
  const std::vector<KernelText> table = {kernel("old", "sm_80"), kernel("other", "sm_90a"),
                                         tuned_on("NVIDIA H200", kernel("h200", "sm_90a")),
                                         tuned_on("NVIDIA H100", kernel("h100", "sm_90a"))};
  EXPECT_STREQ(CudaFunction(table).config(), "h100");
  use({h200()});
  EXPECT_STREQ(CudaFunction(table).config(), "h200");
  use({{.name = "NVIDIA GH200", .major = 9, .minor = 0}});
  EXPECT_STREQ(CudaFunction(table).config(), "other");
  use({{.name = "NVIDIA B200", .major = 10, .minor = 0}});
  CudaFunction on_b200(table);
  EXPECT_STREQ(on_b200.config(), "old") << "PTX of sm_80; sm_90a is for 9.0 alone";
  EXPECT_EQ(on_b200.launch(), DEEPGEN_OK);
  EXPECT_EQ(launched().rfind("ptx sm_80", 0), 0u);
  use({{.name = "NVIDIA T4", .major = 7, .minor = 5}});
  CudaFunction on_t4(table);
  EXPECT_EQ(on_t4.config(), nullptr);
  EXPECT_EQ(on_t4.launch(), DEEPGEN_ERROR_NO_KERNEL);
  EXPECT_EQ(calls("cuLibraryLoadData"), 0) << "what cannot run is not tried";
}

TEST_F(CudaSelect, TheClosestArchWins) {
  const std::vector<KernelText> table = {kernel("80", "sm_80"), kernel("86", "sm_86"), kernel("89", "sm_89")};
  use({{.name = "NVIDIA A10", .major = 8, .minor = 6}});
  EXPECT_STREQ(CudaFunction(table).config(), "86");
  use({{.name = "Orin", .major = 8, .minor = 7}});
  EXPECT_STREQ(CudaFunction(table).config(), "86");
  use({a100()});
  EXPECT_STREQ(CudaFunction(table).config(), "80");
  use({h100()});
  EXPECT_STREQ(CudaFunction(table).config(), "89") << "of PTX, the latest too";
}

TEST_F(CudaSelect, TheTargetDecidesWhereItRuns) {
  KernelText k = kernel("plain", "sm_90a");
  k.target = "sm_90", k.cubin = "cubin sm_90 deepgen_kernel=8", k.ptx = "ptx sm_90 deepgen_kernel=8";
  use({{.name = "NVIDIA B200", .major = 10, .minor = 0}});
  CudaFunction f({k});
  EXPECT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(launched(), "ptx sm_90 deepgen_kernel=8");
}

TEST_F(CudaSelect, AlignmentFallsThrough) {
  KernelText wide = kernel("wide"), half = kernel("half"), any = kernel("any"), unused = kernel("unused");
  wide.align_a = wide.align_b = wide.align_d = 16;
  half.align_a = 8, half.align_b = 2, half.align_d = 2;
  any.align_a = any.align_b = any.align_d = 2;
  wide.workspace = 0, half.workspace = 512, any.workspace = 1024, unused.workspace = 1 << 20;
  CudaFunction f({wide, half, any, unused}, /*batch=*/2);
  auto expect = [&](const char* config, const char* what) {
    fake_cuda::state().launches.clear();
    ASSERT_EQ(f.launch(), DEEPGEN_OK) << what;
    EXPECT_NE(launched().find(std::string("name:") + config), std::string::npos)
        << what << ": " << launched();
  };
  f.args.workspace = reinterpret_cast<void*>(0x100000), f.args.workspace_bytes = 1024;
  expect("wide", "dense");
  EXPECT_EQ(f.workspace(), 1024u) << "of those that a call can take";
  EXPECT_EQ(calls("cuLibraryLoadData"), 3) << "all that a call can take, no more, at the first call";
  const deepgen_gemm_args dense = f.args;
  f.args.a = reinterpret_cast<void*>(0x10008);
  expect("half", "base of A");
  f.args.a = reinterpret_cast<void*>(0x10002);
  expect("any", "base of A");
  f.args = dense, f.args.lda = 36;
  expect("half", "leading dimension of A");
  f.args = dense, f.args.stride_b = 128 * 32 + 1;
  expect("half", "stride of B");
  f.args = dense, f.args.stride_b = DEEPGEN_BROADCAST;
  expect("wide", "one B");
  f.args = dense, f.args.ldd = 129;
  expect("half", "leading dimension of D");
  f.args = dense, f.args.c = reinterpret_cast<void*>(0x40002);
  expect("wide", "C is not read");
  f.args.beta = 1;
  expect("half", "C is read");
  f.args = dense;
  f.set_epilogue({deepgen::EpilogueOp::multiply});
  f.args.multiplier = reinterpret_cast<void*>(0x50000);
  expect("wide", "multiplier");
  f.args.ld_multiplier = 130;
  expect("half", "leading dimension of the multiplier");
  EXPECT_EQ(calls("cuLibraryLoadData"), 3);
}

TEST_F(CudaSelect, WithoutAKernelForTheAlignment) {
  KernelText wide = kernel("wide");
  wide.align_a = 16;
  CudaFunction f({wide});
  EXPECT_EQ(f.launch(), DEEPGEN_OK);
  f.args.a = reinterpret_cast<void*>(0x10008);
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_NO_KERNEL);
}

/// A device runs kernels of one order of sums: what these do not take is refused, whoever else could.
TEST_F(CudaSelect, BatchInvariantFunctionsKeepTheirOrder) {
  KernelText own = tuned_on("NVIDIA H100", kernel("own")), narrow = kernel("narrow"), other = kernel("other");
  own.align_a = 16, narrow.align_a = 8;
  own.sum_order = narrow.sum_order = 1, other.sum_order = 2;
  CudaFunction f({other, own, narrow});
  EXPECT_STREQ(f.config(), "own");
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_NE(launched().find("name:own"), std::string::npos);
  f.args.a = reinterpret_cast<void*>(0x10008);
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_NE(launched().find("name:narrow"), std::string::npos) << launched();
  f.args.a = reinterpret_cast<void*>(0x10002);
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_ALIGNMENT);
  use({h200()});
  CudaFunction elsewhere({other, own, narrow});
  EXPECT_STREQ(elsewhere.config(), "other") << "which takes every call of a device that has none of its own";
}

TEST_F(CudaSelect, ACubinThatDoesNotLoadFallsBackToItsPtxThenToTheNext) {
  fake_cuda::state().image_results = {{"cubin sm_90a deepgen_kernel=8 name:best", 209}};
  CudaFunction by_ptx({kernel("best"), kernel("second")});
  EXPECT_EQ(by_ptx.launch(), DEEPGEN_OK);
  EXPECT_EQ(launched(), "ptx sm_90a deepgen_kernel=8 name:best");
  fake_cuda::state().image_results = {{"name:best", 222}};
  CudaFunction next({kernel("best"), kernel("second")});
  EXPECT_EQ(next.launch(), DEEPGEN_OK);
  EXPECT_EQ(launched(), "cubin sm_90a deepgen_kernel=8 name:second");
  EXPECT_STREQ(next.config(), "second");
}

TEST_F(CudaSelect, WhatTheDeviceHasNotFallsThrough) {
  KernelText big = kernel("big"), small = kernel("small");
  big.launches[0].shared = 200 << 10;
  use({{.name = "small one", .major = 9, .minor = 0, .max_dynamic_shared = 99 << 10}});
  EXPECT_STREQ(CudaFunction({big, small}).config(), "small");
  use({h100()});
  EXPECT_STREQ(CudaFunction({big, small}).config(), "big");
  use({{.name = "no clusters", .major = 9, .minor = 0, .clusters = 0}});
  big.launches[0].shared = 0;
  big.launches[0].cluster[0] = 2;
  EXPECT_STREQ(CudaFunction({big, small}).config(), "small");
  KernelText missing = kernel("missing");
  missing.launches[0].entry = "other_entry";
  EXPECT_STREQ(CudaFunction({missing, small}).config(), "small");
}

TEST_F(CudaSelect, NothingLoads) {
  fake_cuda::state().image_results = {{"cubin", 209}, {"ptx", 222}};
  CudaFunction f({kernel("one"), kernel("two")});
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_DRIVER);
  const char* text = nullptr;
  EXPECT_EQ(deepgen_last_driver_error(&text), 222);
  EXPECT_STRNE(text, "");
  EXPECT_EQ(f.config(), nullptr);
  EXPECT_EQ(f.workspace(), 0u);
  fake_cuda::state().image_results.clear();
  EXPECT_EQ(f.launch(), DEEPGEN_OK) << "a failure is not remembered";
}

TEST_F(CudaSelect, TheContextsTroubleIsNotTheKernels) {
  constexpr int kOutOfMemory = 2;
  fake_cuda::state().image_results = {{"name:best", kOutOfMemory}};
  CudaFunction f({kernel("best"), kernel("second")});
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_DRIVER) << "it would keep the second kernel for ever";
  EXPECT_EQ(deepgen_last_driver_error(nullptr), kOutOfMemory);
  fake_cuda::state().image_results.clear();
  EXPECT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_STREQ(f.config(), "best");
}

TEST_F(CudaSelect, DriverErrorsBelongToTheThread) {
  CudaFunction f({kernel("one")});
  ASSERT_EQ(f.prepare(), DEEPGEN_OK);
  fake_cuda::state().results["cuLaunchKernelEx"] = 209;
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_DRIVER);
  const char* text = nullptr;
  EXPECT_EQ(deepgen_last_driver_error(&text), 209);
  EXPECT_STREQ(text, "no kernel image is available for execution on the device");
  std::thread([] {
    const char* other = nullptr;
    EXPECT_EQ(deepgen_last_driver_error(&other), 0);
    EXPECT_STREQ(other, "");
  }).join();
}

TEST_F(CudaSelect, NoContext) {
  CudaFunction f({kernel("one")});
  fake_cuda::set_current(-1);
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_NO_CONTEXT);
  EXPECT_EQ(f.prepare(), DEEPGEN_ERROR_NO_CONTEXT);
  EXPECT_EQ(f.config(), nullptr);
  fake_cuda::set_current(0);
  EXPECT_EQ(f.launch(), DEEPGEN_OK);
  for (int result : {3, 100}) { // cuInit() was not called; no device
    fake_cuda::state().results["cuCtxGetDevice"] = result;
    EXPECT_EQ(f.launch(), DEEPGEN_ERROR_NO_CONTEXT);
  }
}

TEST_F(CudaSelect, CpuAndGpuKernelsInOneTable) {
  CudaFunction f({kernel("gpu")});
  EXPECT_EQ(deepgen_run_gemm(&f.function(), &f.args), DEEPGEN_ERROR_NO_KERNEL);
  deepgen_function cpu_only = f.function();
  cpu_only.devices = nullptr;
  EXPECT_EQ(deepgen_launch_gemm(&cpu_only, &f.args, nullptr), DEEPGEN_ERROR_NO_KERNEL);
  EXPECT_EQ(deepgen_launch_gemm(nullptr, &f.args, nullptr), DEEPGEN_ERROR_NULL);
  EXPECT_EQ(deepgen_launch_gemm(&f.function(), nullptr, nullptr), DEEPGEN_ERROR_NULL);
}

TEST_F(CudaSelect, MalformedDescriptions) {
  auto refused = [](auto change) {
    KernelText k = kernel("bad");
    change(k);
    return CudaFunction({k}).launch() == DEEPGEN_ERROR_ARGUMENT;
  };
  EXPECT_FALSE(refused([](KernelText&) {}));
  EXPECT_TRUE(refused([](KernelText& k) { k.cubin = k.ptx = ""; }));
  EXPECT_TRUE(refused([](KernelText& k) { k.target = "gfx90a"; }));
  EXPECT_TRUE(refused([](KernelText& k) { k.args = {DEEPGEN_ARG_COUNT}; }));
  EXPECT_TRUE(refused([](KernelText& k) { k.args = {DEEPGEN_ARG_M0}; }));
  EXPECT_TRUE(refused([](KernelText& k) { k.args = {DEEPGEN_ARG_MAP_A}; })) << "a map without a description";
  EXPECT_TRUE(refused([](KernelText& k) { k.align_b = 3; }));
  EXPECT_TRUE(refused([](KernelText& k) { k.launches.clear(); }));
  EXPECT_TRUE(refused([](KernelText& k) { k.launches[0].cluster[2] = 0; }));
}

TEST_F(CudaSelect, TwoDevicesHaveChoicesOfTheirOwn) {
  use({h100(), a100()});
  CudaFunction f({kernel("hopper", "sm_90a"), kernel("ampere", "sm_80")});
  EXPECT_STREQ(f.config(), "hopper");
  fake_cuda::set_current(1);
  EXPECT_STREQ(f.config(), "ampere");
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(launched(), "cubin sm_80 deepgen_kernel=8 name:ampere");
  fake_cuda::set_current(0);
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(launched(), "cubin sm_90a deepgen_kernel=8 name:hopper");
  use({h100(), h200()});
  CudaFunction twins({kernel("both", "sm_90a")});
  EXPECT_EQ(twins.launch(), DEEPGEN_OK);
  fake_cuda::set_current(1);
  EXPECT_EQ(twins.launch(), DEEPGEN_OK);
  EXPECT_EQ(calls("cuLibraryLoadData"), 1) << "code is loaded once for all devices";
}

/// As when a library is unloaded: what was loaded and allocated goes, and a call would begin anew.
TEST_F(CudaSelect, UnregisteringUnloadsTheCode) {
  use({h100(), a100()});
  CudaFunction f({kernel("hopper", "sm_90a"), kernel("ampere", "sm_80")}), untouched({kernel("other")});
  for (int round = 1; round <= 3; ++round) {
    for (int device : {0, 1}) {
      fake_cuda::set_current(device);
      ASSERT_EQ(f.launch(), DEEPGEN_OK);
    }
    EXPECT_EQ(calls("cuLibraryLoadData"), 2 * round);
    for (int i = 0; i < 2; ++i) deepgen_unregister(&f.function(), 1); // the second time nothing is left
    EXPECT_EQ(calls("cuLibraryUnload"), 2 * round);
    EXPECT_EQ(*f.function().devices, nullptr);
    for (uint32_t i = 0; i < 2; ++i) EXPECT_EQ(*f.function().kernels[i].gpu->state, nullptr);
  }
  deepgen_unregister(&untouched.function(), 1);
  deepgen_unregister(nullptr, 1);
  EXPECT_EQ(calls("cuLibraryUnload"), 6);
}

TEST_F(CudaSelect, EightThreadsCallFirst) {
  for (int round = 0; round < 300; ++round) {
    use({h100(), h200()});
    KernelText wide = kernel("wide");
    wide.align_a = 16;
    CudaFunction f({wide, kernel("any")});
    std::latch start(8);
    std::vector<std::thread> threads;
    std::atomic<int> failures{0};
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        fake_cuda::set_current(t % 2);
        start.arrive_and_wait();
        failures += f.launch() != DEEPGEN_OK;
      });
    for (std::thread& t : threads) t.join();
    ASSERT_EQ(failures, 0);
    ASSERT_EQ(calls("cuLibraryLoadData"), 2);
    ASSERT_EQ(calls("cuDeviceGetName"), 2) << "one choice a device";
    ASSERT_EQ(fake_cuda::state().launches.size(), 8u);
  }
}

[[noreturn]] void launch_and_exit(const char* path, const char* missing) {
  setenv("DEEPGEN_CUDA_DRIVER", path, 1);
  fake_cuda::reset({h100()});
  fake_cuda::set_current(0);
  if (missing) fake_cuda::state().missing = {missing};
  CudaFunction f({kernel("one")});
  deepgen::tests::launch_and_exit(f);
}

TEST(CudaDriverDeathTest, MissingOrTooOld) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto no_driver = ::testing::ExitedWithCode(DEEPGEN_ERROR_NO_DRIVER);
  EXPECT_EXIT(launch_and_exit("/nowhere/libcuda.so.1", nullptr), no_driver, "");
  EXPECT_EXIT(launch_and_exit("libm.so.6", nullptr), no_driver, "") << "no cuGetProcAddress_v2";
  EXPECT_EXIT(launch_and_exit(deepgen::paths::fake_cuda, "cuLibraryLoadData"), no_driver, "")
      << "before 12.0";
  EXPECT_EXIT(launch_and_exit(deepgen::paths::fake_cuda, "cuFuncLoad"), ::testing::ExitedWithCode(DEEPGEN_OK),
              "")
      << "before 12.4";
  EXPECT_EXIT(launch_and_exit(deepgen::paths::fake_cuda, nullptr), ::testing::ExitedWithCode(DEEPGEN_OK), "");
}

[[noreturn]] void launch_on_a_short_host(__rlimit_resource what) {
  deepgen::tests::Steps steps;
  const bool copied = what == RLIMIT_AS;
  {
    const deepgen::tests::LibraryCopy copy(deepgen::paths::fake_cuda, copied);
    setenv("DEEPGEN_CUDA_DRIVER", copy.path(), 1);
    fake_cuda::reset({h100()});
    fake_cuda::set_current(0);
    CudaFunction f({kernel("one")});
    deepgen::tests::call_on_a_short_host(f, what, steps);
    steps.expect(f.launch() == (copied ? DEEPGEN_ERROR_NO_CONTEXT : DEEPGEN_OK)); // a copy has no devices
  }
  std::_Exit(steps.wrong());
}

TEST(CudaDriverDeathTest, WhatTheHostCannotLoadNowIsTriedAgain) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(launch_on_a_short_host(RLIMIT_NOFILE), ::testing::ExitedWithCode(0), "");
#ifndef __SANITIZE_ADDRESS__ // which needs address space of its own
  EXPECT_EXIT(launch_on_a_short_host(RLIMIT_AS), ::testing::ExitedWithCode(0), "");
#endif
}

/// A file that is no library may be replaced while the program runs.
[[noreturn]] void launch_with_a_mended_driver() {
  const deepgen::tests::LibraryCopy copy(deepgen::paths::fake_cuda, false);
  const std::string path = std::string(copy.path()) + ".broken";
  std::ofstream(path) << std::string(1000, 'x');
  setenv("DEEPGEN_CUDA_DRIVER", path.c_str(), 1);
  fake_cuda::reset({h100()});
  fake_cuda::set_current(0);
  CudaFunction f({kernel("one")});
  const bool refused = f.launch() == DEEPGEN_ERROR_NO_DRIVER;
  std::filesystem::rename(copy.path(), path);
  const bool mended = f.launch() == DEEPGEN_OK;
  std::filesystem::remove(path);
  std::_Exit(refused && mended ? 0 : 1);
}

TEST(CudaDriverDeathTest, OneThatDoesNotLoadIsTriedAgain) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(launch_with_a_mended_driver(), ::testing::ExitedWithCode(0), "");
}

} // namespace
