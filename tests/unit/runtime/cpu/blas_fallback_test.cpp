// When OpenBLAS runs in place of a kernel, and when it does not: by a fake one.
#include "blas_function.h"
#include "fake_openblas.h"
#include "tests/paths.h"
#include "tests/unit/runtime/counted_allocations.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace deepgen::blas_tests;

void with_fake() {
  setenv("DEEPGEN_OPENBLAS", deepgen::paths::fake_openblas, 1); // this program has loaded it
  fake_openblas::state().threads = 1, fake_openblas::state().calls = 0;
}

TEST(BlasFallback, RunsInPlaceOfTheKernel) {
  with_fake();
  Function f(problem(3, 2, 4));
  std::vector<float> a(12, 2), b(8, 3), d(6, -1);
  f.args.a = a.data(), f.args.b = b.data(), f.args.d = d.data();
  ASSERT_EQ(deepgen_register(&f.function, 1), DEEPGEN_OK);
  EXPECT_EQ(f.config(), "the call");
  EXPECT_NE(f.state().find("the vendor's library runs"), std::string::npos) << f.state();
  ASSERT_EQ(f.run(), DEEPGEN_OK);
  EXPECT_EQ(d, std::vector<float>(6, 24));
  EXPECT_EQ(kernel_calls, 0);
  const long before = allocations;
  ASSERT_EQ(f.run(), DEEPGEN_OK);
  EXPECT_TRUE(!COUNTS_ALLOCATIONS || allocations == before);
}

TEST(BlasFallback, ARegisteredFunctionNeedsNoneOfIt) {
  Function f(problem(3, 2, 4));
  f.kernel.vendor = nullptr;
  EXPECT_EQ(f.config(), "the kernel");
  EXPECT_EQ(deepgen_selected_fallback(&f.function), nullptr);
  EXPECT_EQ(deepgen_selected_fallback(nullptr), nullptr);
}

/// What the kernel runs for, and the words of deepgen_selected_fallback().
void expect_kernel(Function& f, const std::string& words) {
  std::vector<float> a(12, 2), b(8, 3), d(6, -1);
  f.args.a = a.data(), f.args.b = b.data(), f.args.d = d.data();
  ASSERT_EQ(f.run(), DEEPGEN_OK);
  EXPECT_EQ(kernel_calls, 1);
  EXPECT_EQ(f.config(), "the kernel");
  EXPECT_NE(f.state().find(words), std::string::npos) << f.state();
}

TEST(BlasFallback, TheKernelRunsWithAnotherVersion) {
  with_fake();
  Function f(problem(3, 2, 4), "9.8.6");
  expect_kernel(f, "another version");
}
TEST(BlasFallback, TheKernelRunsOnAnotherDevice) {
  with_fake();
  Function f(problem(3, 2, 4));
  f.call.device = "a CPU of next year";
  expect_kernel(f, "another device");
}
TEST(BlasFallback, TheKernelRunsWhereTheEnvironmentSaysSo) {
  with_fake();
  setenv("DEEPGEN_FALLBACK", "off", 1);
  Function f(problem(3, 2, 4));
  expect_kernel(f, "DEEPGEN_FALLBACK is off");
  unsetenv("DEEPGEN_FALLBACK");
}
TEST(BlasFallback, TheKernelRunsWhereTheLibraryHasThreads) {
  with_fake();
  Function f(problem(3, 2, 4));
  std::vector<float> a(12, 2), b(8, 3), d(6, -1);
  f.args.a = a.data(), f.args.b = b.data(), f.args.d = d.data();
  ASSERT_EQ(f.run(), DEEPGEN_OK);
  EXPECT_EQ(kernel_calls, 0);
  fake_openblas::state().threads = 4; // as a program may say at any time
  ASSERT_EQ(f.run(), DEEPGEN_OK);
  EXPECT_EQ(kernel_calls, 1);
  EXPECT_EQ(f.config(), "the kernel");
  EXPECT_NE(f.state().find("OPENBLAS_NUM_THREADS=1"), std::string::npos);
  fake_openblas::state().threads = 1;
}
TEST(BlasFallback, TheKernelRunsWithoutTheLibrary) {
  GTEST_FLAG_SET(death_test_style, "threadsafe"); // in a process that has loaded none
  EXPECT_EXIT(
      {
        setenv("DEEPGEN_OPENBLAS", "libopenblas-that-nobody-has.so", 1);
        setenv("OPENBLAS_NUM_THREADS", "1", 1);
        Function f(problem(3, 2, 4));
        expect_kernel(f, "is not here");
        std::_Exit(HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}
TEST(BlasFallback, ALibraryThatWouldStartThreadsIsNotLoaded) {
  GTEST_FLAG_SET(death_test_style, "threadsafe"); // in a process that has loaded none
  EXPECT_EXIT(
      {
        setenv("DEEPGEN_OPENBLAS", "libopenblas-that-nobody-has.so", 1);
        unsetenv("OPENBLAS_NUM_THREADS");
        Function f(problem(3, 2, 4));
        expect_kernel(f, "OPENBLAS_NUM_THREADS=1");
        std::_Exit(HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(BlasFallback, ADescriptionThatCannotBeWorkedWithIsRefused) {
  with_fake();
  const auto refused = [](auto change) {
    Function f(problem(3, 2, 4));
    change(f.call);
    return deepgen_register(&f.function, 1) == DEEPGEN_ERROR_ARGUMENT;
  };
  const uint8_t unknown = 200;
  EXPECT_TRUE(refused([](auto& c) { c.library = DEEPGEN_LIBRARY_CUBLASLT; }));
  EXPECT_TRUE(refused([](auto& c) { c.state = nullptr; }));
  EXPECT_TRUE(refused([](auto& c) { c.version = nullptr; }));
  EXPECT_TRUE(refused([](auto& c) { c.step_count = 1000; }));
  EXPECT_TRUE(refused([&](auto& c) { c.steps = &unknown, c.step_count = 1; }));
}

TEST(BlasFallback, WhatReadsDLeavesItToTheKernel) {
  with_fake();
  deepgen::Gemm p = problem(3, 2, 4);
  p.epilogue = {EpilogueOp::residual};
  Function f(p);
  std::vector<float> a(12, 2), b(8, 3), d(6, -1), other(6, 5);
  f.args.a = a.data(), f.args.b = b.data(), f.args.d = d.data(), f.args.residual = d.data();
  ASSERT_EQ(f.run(), DEEPGEN_OK);
  EXPECT_EQ(kernel_calls, 1);
  f.args.residual = other.data();
  ASSERT_EQ(f.run(), DEEPGEN_OK);
  EXPECT_EQ(kernel_calls, 1);
  EXPECT_EQ(d, std::vector<float>(6, 29));
}

TEST(BlasFallback, CIsAddedWhereverItLies) {
  with_fake();
  Function f(problem(3, 2, 4));
  std::vector<float> a(12, 2), b(8, 3), d(3 * 5, -1), c(3 * 4);
  for (size_t i = 0; i < c.size(); ++i) c[i] = float(i);
  f.args.a = a.data(), f.args.b = b.data(), f.args.c = c.data(), f.args.ldc = 4, f.args.d = d.data(),
  f.args.ldd = 5;
  f.args.alpha = 0.5, f.args.beta = 2;
  ASSERT_EQ(f.run(), DEEPGEN_OK);
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j < 5; ++j) EXPECT_EQ(d[i * 5 + j], j < 2 ? 12 + 2 * c[i * 4 + j] : -1) << i << j;
  d = {1, 2, 0, 0, 0, 3, 4, 0, 0, 0, 5, 6, 0, 0, 0};
  f.args.c = d.data(), f.args.ldc = 5;
  ASSERT_EQ(f.run(), DEEPGEN_OK);
  EXPECT_EQ(d[0], 14);
  EXPECT_EQ(d[11], 24);
  EXPECT_EQ(kernel_calls, 0);
}

TEST(BlasFallback, ConcurrentCalls) {
  with_fake();
  Function f(problem(70, 66, 20));
  std::vector<float> a(70 * 20, 1), b(20 * 66, 1);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      std::vector<float> d(70 * 66);
      deepgen_gemm_args args = f.args;
      args.a = a.data(), args.b = b.data(), args.d = d.data();
      for (int i = 0; i < 20; ++i) {
        std::fill(d.begin(), d.end(), 0.f);
        wrong += deepgen_run_gemm(&f.function, &args) != DEEPGEN_OK || d != std::vector<float>(70 * 66, 20);
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(kernel_calls, 0);
}

TEST(BlasFallback, NanStaysNan) {
  with_fake();
  for (const EpilogueOp op : {EpilogueOp::relu, EpilogueOp::clamp, EpilogueOp::gelu, EpilogueOp::gelu_tanh,
                              EpilogueOp::silu, EpilogueOp::sigmoid}) {
    deepgen::Gemm p = problem(1, 20, 1);
    p.epilogue = {op};
    Function f(p);
    std::vector<float> a(1, std::nanf("")), b(20, 1), d(20, 0);
    f.args.a = a.data(), f.args.b = b.data(), f.args.d = d.data(), f.args.clamp_high = 1;
    ASSERT_EQ(f.run(), DEEPGEN_OK);
    for (float x : d) EXPECT_TRUE(std::isnan(x)) << int(op);
  }
}

} // namespace
