// How far a correct GPU kernel may be from the reference: far enough for every device, near enough to see a
// fault.
#include "measure/gpu/cuda_tolerance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace deepgen::cuda::cuda_tolerance_test {
namespace {

Gemm product(Type input, Type output, int64_t k) {
  Gemm p;
  p.m = p.n = 64, p.k = k, p.a = p.b = input, p.d = output;
  complete(p);
  return p;
}

/// Of a typical element before the rounding to D: |a||b| is about K/3.
double sum_tolerance(const Gemm& p) { return tolerance_of(p, "sm_90a").sum * double(p.k) / 3; }

TEST(CudaTolerance, ALostProductShowsUpToTheStatedK) {
  const auto noticed = [](Type input, Type output, int64_t k) {
    const Gemm p = product(input, output, k);
    const double rounding = tolerance_of(p, "sm_90a").output * std::sqrt(double(k)) / 3;
    return sum_tolerance(p) + rounding < 0.95;
  };
  EXPECT_TRUE(noticed(Type::f32, Type::f32, 100000));
  EXPECT_TRUE(noticed(Type::f16, Type::f32, 100000));
  EXPECT_TRUE(noticed(Type::tf32, Type::f32, 50000));
  EXPECT_TRUE(noticed(Type::e4m3, Type::f32, 3000));
  EXPECT_TRUE(noticed(Type::bf16, Type::bf16, 60000));
  EXPECT_TRUE(noticed(Type::f64, Type::f64, 1000000));
  EXPECT_FALSE(noticed(Type::e4m3, Type::f32, 20000));
}

TEST(CudaTolerance, ARowInTheWrongPlaceShowsAtEveryK) {
  for (Type t : {Type::f32, Type::f16, Type::bf16, Type::tf32, Type::e4m3, Type::f64})
    for (int64_t k : {1, 16, 1000, 65536}) {
      const Gemm p = product(t, t == Type::f64 ? t : Type::f32, k);
      EXPECT_LT(sum_tolerance(p), std::sqrt(double(k)) / 2) << p.key();
    }
}

/// A tensor core: aligns the addends of each step to the largest, and cuts off what lies below 2^-bits of it.
double tensor_core_sum(const std::vector<double>& products, size_t step, int bits) {
  double sum = 0;
  for (size_t k = 0; k < products.size(); k += step) {
    double largest = std::fabs(sum);
    for (size_t i = k; i < k + step; ++i) largest = std::max(largest, std::fabs(products[i]));
    const double ulp = std::exp2(std::ilogb(largest) - bits);
    double next = std::trunc(sum / ulp) * ulp;
    for (size_t i = k; i < k + step; ++i) next += std::trunc(products[i] / ulp) * ulp;
    sum = next;
  }
  return sum;
}

TEST(CudaTolerance, TensorCoresThatCutOffStayWithin) {
  struct Core {
    Type type;
    size_t step;
    int bits;
  };
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (const Core& core :
       {Core{Type::f16, 4, 23}, Core{Type::bf16, 16, 23}, Core{Type::e4m3, 16, 13}, Core{Type::e5m2, 32, 13}})
    for (size_t k : {32, 512, 4096}) {
      const double bound = tolerance_of(product(core.type, Type::f32, int64_t(k)), "sm_90a").sum;
      double worst = 0;
      for (int dot = 0; dot < 1000; ++dot) {
        std::vector<double> products(k);
        double exact = 0, a_norm = 0, b_norm = 0;
        for (double& x : products) {
          const double a = uniform(random), b = uniform(random);
          x = std::round(a * b * 0x1p30) * 0x1p-30, exact += x, a_norm += a * a, b_norm += b * b;
        }
        worst = std::max(worst, std::fabs(tensor_core_sum(products, core.step, core.bits) - exact) /
                                    std::sqrt(a_norm * b_norm));
      }
      EXPECT_LT(worst, bound) << to_string(core.type) << " K " << k;
      EXPECT_GT(worst, bound / 60) << to_string(core.type) << " K " << k; // and the bound is not idle
    }
}

TEST(CudaTolerance, OutputsOfIntegers) {
  EXPECT_EQ(tolerance_of(product(Type::i8, Type::i8, 8), "sm_90a").output, 0);
  EXPECT_EQ(tolerance_of(product(Type::f16, Type::f16, 8), "sm_90a").largest, 65504);
}

/// Two subnormal operands of a sum of few products, and the largest scales of a call.
TEST(CudaTolerance, HasRoomForWhatGfx90aFlushes) {
  const Gemm p = product(Type::f16, Type::f32, 16);
  const double flushed = 2 * 0x1p-14 * 4.2;
  EXPECT_GT(tolerance_of(p, "gfx90a").smallest, flushed);
  EXPECT_LT(tolerance_of(p, "gfx90a").smallest, 0.01); // a lost product still shows
  EXPECT_LT(tolerance_of(p, "gfx942").smallest, 1e-30);
  EXPECT_LT(tolerance_of(product(Type::bf16, Type::f32, 16), "gfx90a").smallest, 1e-30);
}

} // namespace
} // namespace deepgen::cuda::cuda_tolerance_test
