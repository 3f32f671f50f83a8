// The elementwise functions of epilogues over their range, against long double.
#include "measure/values/buffers.h"
#include "measure/values/inputs.h"
#include "measure/values/operands.h"
#include "tests/numerics/numerics.h"

#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>

namespace deepgen::functions_test {
namespace {

using namespace numerics;
using Real = long double;

/// `argument`: of the exponential, where that is rounded: the relative error grows with it.
struct Function {
  EpilogueOp op;
  Real (*exact)(Real), (*argument)(Real);
};

Real none(Real) { return 0; }

constexpr Real kRoot = 0.797884560802865355879892119868763737L; // sqrt(2 / pi)

Real twice_u(Real x) { return 2 * kRoot * (x + 0.044715L * x * x * x); }

const Function kFunctions[] = {
    {EpilogueOp::relu, [](Real x) { return std::fmax(x, Real(0)); }, none},
    {EpilogueOp::gelu, [](Real x) { return x / 2 * std::erfc(-x * std::sqrt(0.5L)); },
     [](Real x) { return x * x / 2; }},
    {EpilogueOp::gelu_tanh, [](Real x) { return x / (1 + std::exp(-twice_u(x))); }, twice_u},
    {EpilogueOp::silu, [](Real x) { return x / (1 + std::exp(-x)); }, none},
    {EpilogueOp::sigmoid, [](Real x) { return 1 / (1 + std::exp(-x)); }, none},
};

/// f(x) for every x, by a kernel of one row and K = 1 with A = 1. `operand`: of a step that has one.
template <typename T>
std::vector<T> evaluate(EpilogueOp op, int64_t level, const std::vector<T>& x,
                        const std::vector<T>& operand = {}) {
  Gemm p;
  p.a = p.b = p.d = sizeof(T) == 4 ? Type::f32 : Type::f64;
  p.n = int64_t(x.size());
  p.epilogue = {op};
  complete(p);
  const Choice choice = Space(p, "cpu", device_of_level(level)).default_choice();
  const KernelFile file = compile_candidate(p, "cpu", choice, false, false);
  EXPECT_EQ(file.status, "ok") << file.detail;
  if (file.status != "ok") return {};
  const T one = 1;
  std::vector<T> d(x.size());
  CallBuffers buffers;
  buffers.a = &one, buffers.b = x.data(), buffers.d = d.data();
  buffers.lda = 1, buffers.ldb = buffers.ldd = p.n;
  buffers.step(op).data = const_cast<T*>(operand.data());
  buffers.clamp_low = -2.5, buffers.clamp_high = 4;
  const PageBuffer workspace(size_t(file.kernels[0].workspace) + 1);
  buffers.workspace = workspace.data();
  LoadedKernel(file.kernels[0]).call(values_of(buffers, p));
  return d;
}

template <typename T>
class Functions : public testing::Test {};
using Floats = testing::Types<float, double>;
TYPED_TEST_SUITE(Functions, Floats);

/// Both signs, densely where functions bend, and by powers of two from the smallest normal number to the
/// largest.
template <typename T>
std::vector<T> sweep() {
  std::vector<T> x;
  Rng rng(17);
  const auto random = [&](double scale) { return T(scale * (double(rng()) / 2147483648.0 - 1)); };
  for (double scale : {0.01, 1.0, 6.0, 40.0, 100.0, 800.0})
    for (int i = 0; i < 4000; ++i) x.push_back(random(scale));
  for (int e = std::numeric_limits<T>::min_exponent; e < std::numeric_limits<T>::max_exponent; ++e)
    for (double sign : {-1.0, 1.0})
      x.push_back(T(sign * std::ldexp(1 + std::fabs(double(random(1))) / 2, e - 1)));
  return x;
}

/// Relative errors in units of u = 2^-24 or 2^-53, also where f(x) is tiny. docs/numerics.md has these
/// bounds. Results below the smallest normal number may be 0; f(x) / x for those that are x times an
/// exponential.
TYPED_TEST(Functions, AreAccurate) {
  using T = TypeParam;
  constexpr Real kUlps = 10, kPerArgument = 5;
  const Real u = std::numeric_limits<T>::epsilon() / 2, tiny = 1.02L * std::numeric_limits<T>::min();
  const std::vector<T> x = sweep<T>();
  for (int64_t level : {host_level(), int64_t(1)})
    for (const Function& f : kFunctions) {
      const std::vector<T> d = evaluate(f.op, level, x);
      ASSERT_EQ(d.size(), x.size());
      Real worst = 0;
      T at = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_TRUE(std::isfinite(d[i])) << to_string(f.op) << "(" << x[i] << ")";
        const Real exact = f.exact(Real(x[i])), error = std::fabs(Real(d[i]) - exact);
        const Real units = kUlps + (x[i] < 0 ? kPerArgument * std::fabs(f.argument(Real(x[i]))) : 0);
        const Real bound = u * units * std::fabs(exact) + tiny * std::fmax(1, std::fabs(Real(x[i])));
        if (error / bound > worst) worst = error / bound, at = x[i];
      }
      EXPECT_LT(worst, 1) << to_string(f.op) << "(" << at << ") at level " << level;
    }
}

/// NaN of any payload passes; infinities have the limits, but -inf times the 0 of gelu and silu is NaN, as in
/// PyTorch.
TYPED_TEST(Functions, HaveTheRightLimits) {
  using T = TypeParam;
  const T inf = std::numeric_limits<T>::infinity(), most = std::numeric_limits<T>::max();
  const T nan = std::numeric_limits<T>::quiet_NaN();
  T payload;
  const uint32_t words[2] = {canary, canary};
  std::memcpy(&payload, words, sizeof payload);
  const std::vector<T> x = {
      nan, -nan, payload, inf, -inf, most, -most, 0, 60, -1000, T(-1e35), T(std::sqrt(most)), 1};
  for (int64_t level : {host_level(), int64_t(1)})
    for (EpilogueOp op : {EpilogueOp::relu, EpilogueOp::gelu, EpilogueOp::gelu_tanh, EpilogueOp::silu,
                          EpilogueOp::sigmoid, EpilogueOp::clamp}) {
      SCOPED_TRACE(to_string(op) + " at level " + std::to_string(level));
      const std::vector<T> d = evaluate(op, level, x);
      ASSERT_EQ(d.size(), x.size());
      for (int i : {0, 1, 2}) EXPECT_TRUE(std::isnan(d[size_t(i)])) << i << ": " << d[size_t(i)];
      const bool is_sigmoid = op == EpilogueOp::sigmoid, is_clamp = op == EpilogueOp::clamp;
      const T low = is_clamp ? T(-2.5) : T(0);
      for (size_t i : {3, 5, 11}) EXPECT_EQ(d[i], is_sigmoid ? 1 : is_clamp ? 4 : x[i]) << x[i];
      for (size_t i : {6, 9, 10}) EXPECT_EQ(d[i], low) << x[i];
      EXPECT_EQ(d[7], is_sigmoid ? T(0.5) : T(0));
      EXPECT_EQ(d[8], is_sigmoid ? 1 : is_clamp ? 4 : x[8]);
      if (op == EpilogueOp::relu || is_sigmoid || is_clamp)
        EXPECT_EQ(d[4], low);
      else
        EXPECT_TRUE(std::isnan(d[4]));
    }
}

/// A subnormal number costs a CPU a hundred cycles: where gelu's tail would be one it is 0, and not before.
TYPED_TEST(Functions, GeluHasNoSubnormalTail) {
  using T = TypeParam;
  const T last = sizeof(T) == 4 ? T(9.19 * std::sqrt(2.0)) : T(26.54 * std::sqrt(2.0));
  std::vector<T> x;
  for (int i = 0; i < 64; ++i) x.push_back(T(-last * (1 + 0.001 * (i % 2 ? i : -i - 1))));
  for (int64_t level : {host_level(), int64_t(1)}) {
    const std::vector<T> d = evaluate(EpilogueOp::gelu, level, x);
    ASSERT_EQ(d.size(), x.size());
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_EQ(d[i] == 0, i % 2 == 1) << "gelu(" << x[i] << ") = " << d[i] << " at level " << level;
  }
}

/// x times a slope is one product; NaN passes, and a slope does not touch what is above 0.
TYPED_TEST(Functions, PreluIsExactOfEveryValue) {
  using T = TypeParam;
  const T inf = std::numeric_limits<T>::infinity(), most = std::numeric_limits<T>::max();
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> x = {nan, -nan, inf, inf, -inf, -inf, most, -most, 3, 3, -3, -3, 0, 5, -5};
  const std::vector<T> slope = {T(0.5),  2,   T(0.5),  nan, T(0.5), -1, inf, 2,
                                T(0.25), nan, T(0.25), -2,  7,      0,  0};
  const std::vector<T> expected = {nan, nan, inf, inf, -inf, inf, most, -inf, 3, 3, T(-0.75), 6, 0, 5, 0};
  for (int64_t level : {host_level(), int64_t(1)}) {
    const std::vector<T> d = evaluate(EpilogueOp::prelu, level, x, slope);
    ASSERT_EQ(d.size(), x.size());
    for (size_t i = 0; i < x.size(); ++i)
      if (std::isnan(expected[i]))
        EXPECT_TRUE(std::isnan(d[i])) << x[i] << ": " << d[i];
      else
        EXPECT_EQ(d[i], expected[i]) << x[i] << " with the slope " << slope[i];
  }
}

} // namespace
} // namespace deepgen::functions_test
