// The translation of column-major calls, by computing: each call as the BLAS library would, and the problem
// that it became as DeepGen would, on the same buffers.
#include "workload/readers/blas.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace deepgen::workload_blas_test {
namespace {

using Scale = BlasCall::Scale;
using Values = std::vector<double>;

struct Buffers {
  Values a, b, c, bias, scale_a, scale_b;
};

double activated(std::optional<EpilogueOp> op, double x) {
  if (!op) return x;
  if (*op == EpilogueOp::relu) return x > 0 ? x : 0;
  EXPECT_EQ(*op, EpilogueOp::sigmoid);
  return 1 / (1 + std::exp(-x));
}

/// D, column-major, by the libraries' definition.
Values computed_by_columns(const BlasCall& call, const Buffers& in) {
  Values d(size_t(call.m * call.n * call.batch));
  for (int64_t z = 0; z < call.batch; ++z)
    for (int64_t i = 0; i < call.m; ++i)
      for (int64_t j = 0; j < call.n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < call.k; ++k) {
          const int64_t a = call.transposed_a ? k + i * call.k : i + k * call.m;
          const int64_t b = call.transposed_b ? j + k * call.n : k + j * call.k;
          sum += in.a[size_t(a + z * call.m * call.k)] * in.b[size_t(b + z * call.n * call.k)];
        }
        if (call.scale_a != Scale::none) sum *= in.scale_a[call.scale_a == Scale::vector ? size_t(i) : 0];
        if (call.scale_b != Scale::none) sum *= in.scale_b[call.scale_b == Scale::vector ? size_t(j) : 0];
        if (call.scale_alpha) sum *= in.scale_a[size_t(i)];
        const size_t at = size_t(i + j * call.m + z * call.m * call.n);
        if (!call.beta_is_zero) sum += 0.5 * in.c[at];
        if (call.bias) sum += in.bias[size_t(i)];
        d[at] = activated(call.activation, sum);
      }
  return d;
}

/// D, row-major, as base/problem/gemm.h defines it; A is the library's B, and so on.
Values computed_by_rows(const Gemm& p, const Buffers& in, bool with_c) {
  Values d(size_t(p.m * p.n * p.batch));
  for (int64_t z = 0; z < p.batch; ++z)
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j) {
        double x = 0;
        for (int64_t k = 0; k < p.k; ++k) {
          const int64_t a = p.a_transposed() ? k * p.m + i : i * p.k + k;
          const int64_t b = p.b_transposed() ? j * p.k + k : k * p.n + j;
          x += in.b[size_t(a + z * p.m * p.k)] * in.a[size_t(b + z * p.n * p.k)];
        }
        const size_t at = size_t(i * p.n + j + z * p.m * p.n);
        if (with_c) x += 0.5 * in.c[at];
        for (EpilogueOp op : p.epilogue) switch (op) {
          case EpilogueOp::bias:
            x += in.bias[size_t(j)];
            break;
          case EpilogueOp::scale_a:
            x *= in.scale_b[0];
            break;
          case EpilogueOp::scale_b:
            x *= in.scale_a[0];
            break;
          case EpilogueOp::scale_row:
            x *= in.scale_b[size_t(i)];
            break;
          case EpilogueOp::scale_col:
            x *= in.scale_a[size_t(j)];
            break;
          default:
            x = activated(op, x);
          }
        d[at] = x;
      }
  return d;
}

Buffers random_buffers(const BlasCall& call) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> value(-1, 1);
  const auto many = [&](int64_t n) {
    Values v(static_cast<size_t>(n));
    for (double& x : v) x = value(random);
    return v;
  };
  return {many(call.m * call.k * call.batch),
          many(call.k * call.n * call.batch),
          many(call.m * call.n * call.batch),
          many(call.m),
          many(call.m),
          many(call.n)};
}

void expect_equal_results(const BlasCall& blas) {
  Call call;
  translate(blas, call);
  const Gemm& gemm = call.problem.gemm();
  EXPECT_EQ(call.flops, gemm.flops());
  const Buffers in = random_buffers(blas);
  const Values expected = computed_by_columns(blas, in),
               found = computed_by_rows(gemm, in, !blas.beta_is_zero);
  ASSERT_EQ(expected.size(), found.size());
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(expected[i], found[i], 1e-12) << gemm.key();
}

BlasCall call_of(bool ta, bool tb, int64_t batch) {
  BlasCall call;
  call.transposed_a = ta, call.transposed_b = tb;
  call.m = 3, call.n = 5, call.k = 4, call.batch = batch;
  call.a = call.b = call.d = "bf16_r";
  return call;
}

TEST(WorkloadBlas, EveryTranspositionGivesTheSameNumbers) {
  for (bool ta : {false, true})
    for (bool tb : {false, true})
      for (int64_t batch : {1, 2}) {
        BlasCall call = call_of(ta, tb, batch);
        expect_equal_results(call); // with C
        call.bias = true, call.activation = EpilogueOp::sigmoid;
        expect_equal_results(call);
        call.beta_is_zero = true;
        for (Scale a : {Scale::none, Scale::tensor, Scale::vector})
          for (Scale b : {Scale::none, Scale::tensor, Scale::vector}) {
            call.scale_a = a, call.scale_b = b;
            expect_equal_results(call);
          }
        call.scale_a = Scale::none, call.scale_alpha = true;
        expect_equal_results(call);
      }
}

std::string refusal(const BlasCall& blas) {
  Call call;
  try {
    translate(blas, call);
  } catch (const Untranslatable& e) {
    EXPECT_EQ(call.flops, 2.0 * double(blas.m) * double(blas.n) * double(blas.k) * double(blas.batch))
        << "what is lost is weighed";
    return e.why;
  }
  return "";
}

TEST(WorkloadBlas, WhatWouldComputeOtherNumbersIsRefused) {
  BlasCall call = call_of(false, true, 1);
  call.scale_a = Scale::tensor;
  EXPECT_NE(refusal(call).find("would scale C as well"), std::string::npos);
  call.beta_is_zero = true;
  EXPECT_EQ(refusal(call), "");
  call.scale_a = Scale::vector, call.scale_alpha = true;
  EXPECT_NE(refusal(call).find("two scales"), std::string::npos);
  call = call_of(false, false, 1);
  call.bias = true, call.bias_type = "f32_r";
  EXPECT_EQ(refusal(call), "its bias is 'f32_r', and DeepGen's would be bf16");
  call = call_of(false, false, 1);
  call.c = "f32_r";
  EXPECT_NE(refusal(call).find("its C is 'f32_r'"), std::string::npos);
  call.beta_is_zero = true;
  EXPECT_EQ(refusal(call), "");
  call = call_of(false, false, 1);
  call.a = call.b = call.d = "f32_r", call.compute = "c_f32_fast_f16_r";
  EXPECT_NE(refusal(call).find("16 bits"), std::string::npos);
  call.compute = "COMPUTE_32F_FAST_TF32";
  EXPECT_EQ(refusal(call), "");
  call = call_of(false, false, 1);
  call.n = 0;
  EXPECT_EQ(refusal(call), "size out of range: m = 0");
}

} // namespace
} // namespace deepgen::workload_blas_test
