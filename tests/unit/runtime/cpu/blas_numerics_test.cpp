// The installed OpenBLAS in place of a kernel, with the epilogues behind it, against plain loops in f64.
#include "blas_function.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <dlfcn.h>

namespace {

using namespace deepgen::blas_tests;

std::string installed_openblas() {
  void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!library) return "";
  const auto config = reinterpret_cast<const char* (*)()>(dlsym(library, "openblas_get_config"));
  const std::string text = config ? config() : "";
  const size_t begin = text.find(' ') + 1;
  return text.substr(begin, text.find(' ', begin) - begin);
}

/// By deepgen_verify(), which compares with a plain loop in f64, with alpha, beta, C and padded rows.
void expect_verified(deepgen::Gemm p, const std::string& version) {
  Function f(p, version);
  char text[400] = "?";
  EXPECT_EQ(deepgen_verify(&f.function, text, sizeof text), DEEPGEN_OK) << text << "\n" << f.function.problem;
  EXPECT_EQ(f.config(), "the call") << f.state();
  EXPECT_EQ(kernel_calls, 0) << f.function.problem;
}

TEST(BlasFallback, IsRightByTheInstalledOpenBlas) {
  unsetenv("DEEPGEN_OPENBLAS");
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  const std::string version = installed_openblas();
  if (version.empty()) GTEST_SKIP() << "no OpenBLAS here";
  ASSERT_EQ(deepgen_set_num_threads(3), DEEPGEN_OK);
  using deepgen::Layout;
  for (const deepgen::Type type : {deepgen::Type::f32, deepgen::Type::f64})
    for (const Layout layout : {Layout::nn, Layout::nt, Layout::tn, Layout::tt})
      for (const int64_t batch : {1, 3})
        for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 1, 1}, {17, 9, 23}, {130, 200, 150}}) {
          deepgen::Gemm p = problem(m, n, k, type);
          p.layout = layout, p.batch = batch;
          expect_verified(p, version);
          p.epilogue = {EpilogueOp::bias, EpilogueOp::gelu};
          expect_verified(p, version);
        }
  for (int step = 0; step < deepgen::epilogue_op_count; ++step)
    for (const deepgen::Type type : {deepgen::Type::f32, deepgen::Type::f64}) {
      deepgen::Gemm p = problem(33, 1100, 40, type); // more columns than a piece
      p.batch = 2, p.epilogue = {EpilogueOp(step)};
      try {
        validate(p);
      } catch (const std::exception&) {
        continue; // a step of other types
      }
      expect_verified(p, version);
    }
  deepgen::Gemm all = problem(64, 96, 48);
  all.epilogue = {EpilogueOp::scale_row, EpilogueOp::bias,  EpilogueOp::bias_row, EpilogueOp::silu,
                  EpilogueOp::multiply,  EpilogueOp::clamp, EpilogueOp::residual, EpilogueOp::prelu};
  expect_verified(all, version);
}

TEST(BlasFallback, EveryLevelOfTheCpu) {
  unsetenv("DEEPGEN_OPENBLAS");
  setenv("OPENBLAS_NUM_THREADS", "1", 1); // ahead of loading it
  const std::string version = installed_openblas();
  if (version.empty()) GTEST_SKIP() << "no OpenBLAS here";
  for (const char* level : {"1", "3", "4"}) {
    setenv("DEEPGEN_CPU_LEVEL", level, 1);
    deepgen::Gemm p = problem(33, 100, 40);
    p.epilogue = {EpilogueOp::gelu_tanh, EpilogueOp::sigmoid};
    expect_verified(p, version);
  }
  unsetenv("DEEPGEN_CPU_LEVEL");
}

} // namespace
