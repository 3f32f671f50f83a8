// What measuring stands on: the reference and its tolerance, guarded buffers, statistics, devices. Others:
// worker_test.cpp, vendor_test.cpp, race_test.cpp.
#include "base/json/json.h"
#include "base/text/error.h"
#include "measure/devices/devices.h"
#include "measure/race/statistics.h"
#include "measure/values/buffers.h"
#include "measure/values/operands.h"
#include "measure/values/reference.h"
#include "measure/values/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace deepgen::measure_test {
namespace {

// --- reference
// ----------------------------------------------------------------------------------------------------

double at(Type type, const PageBuffer& x, int64_t i) {
  return type == Type::f32 ? reinterpret_cast<const float*>(x.data())[i]
                           : reinterpret_cast<const double*>(x.data())[i];
}

/// Of the product of `columns` columns.
double dot(const Gemm& p, const Inputs& in, int64_t entry, int64_t m, int64_t n, int64_t columns) {
  double x = 0;
  for (int64_t k = 0; k < p.k; ++k)
    x += at(p.a, in.a, entry * p.m * p.k + (p.a_transposed() ? k * p.m + m : m * p.k + k)) *
         at(p.b, in.b, entry * p.k * columns + (p.b_transposed() ? n * p.k + k : k * columns + n));
  return x;
}

TEST(Inputs, BeginWhereMallocBeginsLargeBlocks) {
  const Inputs in(
      Gemm::parse("gemm m=33 n=17 k=9 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=bias align=4"), 1);
  const auto behind_line = [](const PageBuffer& x) { return reinterpret_cast<uintptr_t>(x.data()) % 64; };
  EXPECT_EQ(behind_line(in.a), 16u);
  EXPECT_EQ(behind_line(in.b), 16u);
  EXPECT_EQ(behind_line(in.operand(EpilogueOp::bias)), 16u);
  EXPECT_EQ(behind_line(PageBuffer(100, 3)), 0u);
}

double naive(const Gemm& p, const Inputs& in, int64_t entry, int64_t m, int64_t n, double alpha,
             double beta) {
  double x = alpha * dot(p, in, entry, m, n, p.gate ? 2 * p.n : p.n);
  if (p.gate == EpilogueOp::silu) x = x / (1 + std::exp(-x)) * alpha * dot(p, in, entry, m, p.n + n, 2 * p.n);
  if (p.gate == EpilogueOp::relu) x = std::max(x, 0.0) * alpha * dot(p, in, entry, m, p.n + n, 2 * p.n);
  x += beta * at(p.d, in.c, (entry * p.m + m) * p.n + n);
  const auto y = [&](EpilogueOp op, int64_t i) { return at(p.d, in.operand(op), i); };
  const int64_t place = (entry * p.m + m) * p.n + n;
  for (EpilogueOp op : p.epilogue) switch (op) {
    case EpilogueOp::bias:
      x += y(op, n);
      break;
    case EpilogueOp::bias_row:
      x += y(op, m);
      break;
    case EpilogueOp::relu:
      x = x > 0 ? x : 0;
      break;
    case EpilogueOp::prelu:
      x = x > 0 ? x : x * y(op, n);
      break;
    case EpilogueOp::gelu:
      x = x * 0.5 * (1 + std::erf(x / std::sqrt(2.0)));
      break;
    case EpilogueOp::gelu_tanh:
      x = x * 0.5 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
      break;
    case EpilogueOp::silu:
      x = x / (1 + std::exp(-x));
      break;
    case EpilogueOp::sigmoid:
      x = 0.5 + 0.5 * std::tanh(x / 2);
      break;
    case EpilogueOp::clamp:
      x = std::clamp(x, in.clamp_low, in.clamp_high);
      break;
    case EpilogueOp::residual:
      x += y(op, place);
      break;
    case EpilogueOp::multiply:
      x *= y(op, place);
      break;
    case EpilogueOp::scale_row:
      x *= y(op, m);
      break;
    case EpilogueOp::scale_col:
      x *= y(op, n);
      break;
    case EpilogueOp::scale_a:
    case EpilogueOp::scale_b:
    case EpilogueOp::scale_d:
      x *= y(op, 0);
      break;
    }
  return x;
}

TEST(Reference, EqualsTheNaiveLoop) {
  for (const char* key :
       {"gemm m=5 n=9 k=3 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn epilogue=none align=4",
        "gemm m=70 n=530 k=300 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=bias+gelu align=4",
        "gemm m=21 n=17 k=40 batch=2 a=f64 b=f64 d=f64 acc=f64 layout=tt gate=silu epilogue=bias+residual "
        "align=8",
        "gemm m=5 n=530 k=300 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn gate=relu epilogue=none align=4",
        "gemm m=33 n=17 k=257 batch=3 a=f64 b=f64 d=f64 acc=f64 layout=tn epilogue=silu align=8",
        "gemm m=1 n=1 k=1 batch=2 a=f64 b=f64 d=f64 acc=f64 layout=tt epilogue=relu+bias align=8",
        "gemm m=21 n=17 k=40 batch=2 a=f64 b=f64 d=f64 acc=f64 layout=nt epilogue=prelu+residual align=8",
        "gemm m=21 n=17 k=40 batch=2 a=f32 b=f32 d=f32 acc=f32 layout=nn "
        "epilogue=scale_a+scale_b+bias_row+gelu_tanh+multiply+scale_row+residual align=4",
        "gemm m=21 n=17 k=40 batch=2 a=f64 b=f64 d=f64 acc=f64 layout=nn "
        "epilogue=residual+clamp+scale_col+sigmoid+multiply+scale_d align=8"}) {
    const Gemm p = Gemm::parse(key);
    const Inputs inputs(p, 3);
    const Reference reference(p, inputs, 3);
    ASSERT_EQ(int64_t(reference.rows().size()), p.m * p.batch);
    const Expected e = reference.expected(1.5, -0.25);
    for (int64_t row = 0; row < p.m * p.batch; ++row)
      for (int64_t n = 0; n < p.n; ++n) {
        const size_t i = size_t(row * p.n + n);
        ASSERT_NEAR(e.value[i], naive(p, inputs, row / p.m, row % p.m, n, 1.5, -0.25), 1e-12) << key;
        ASSERT_GT(e.tolerance[i], 0);
      }
  }
}

/// f32 results for all rows, in the order of k, with `skip` left out; as a kernel without tiles would.
std::vector<float> multiply_f32(const Gemm& p, const Inputs& in, int64_t skip) {
  const auto *a = reinterpret_cast<const float*>(in.a.data()),
             *b = reinterpret_cast<const float*>(in.b.data());
  std::vector<float> d(size_t(p.m * p.n));
  for (int64_t m = 0; m < p.m; ++m)
    for (int64_t k = 0; k < p.k; ++k)
      if (k != skip)
        for (int64_t n = 0; n < p.n; ++n) d[size_t(m * p.n + n)] += a[m * p.k + k] * b[k * p.n + n];
  return d;
}

TEST(Tolerance, HoldsForCorrectSumsAndCatchesADroppedTerm) {
  for (int64_t k : {1, 2, 7, 64, 1000, 4096, 16384}) {
    Gemm p;
    p.m = 12, p.n = 24, p.k = k;
    const Inputs inputs(p, uint64_t(k));
    const Reference reference(p, inputs, 1);
    const Expected expected = reference.expected(1, 0);
    const auto check = [&](const std::vector<float>& d) {
      return compare(p, reference.rows(), expected, [&](int64_t, int64_t row) {
        return reinterpret_cast<const char*>(&d[size_t(row * p.n)]);
      });
    };
    const Comparison good = check(multiply_f32(p, inputs, -1));
    EXPECT_TRUE(good.ok()) << "k=" << k << ": " << good.detail;
    EXPECT_LT(good.error, 0.5) << "k=" << k << ": correct results need some room";
    for (int64_t skip : {int64_t(0), k / 2, k - 1})
      EXPECT_FALSE(check(multiply_f32(p, inputs, skip)).ok()) << "k=" << k << " without term " << skip;
  }
}

TEST(Reference, SamplesLargeProblems) {
  Gemm p;
  p.m = 40000, p.n = 1000, p.k = 1;
  const Inputs inputs(p, 1, false);
  const Reference reference(p, inputs, 1);
  EXPECT_TRUE(reference.sampled());
  EXPECT_EQ(reference.rows().front(), 0);
  EXPECT_EQ(reference.rows().back(), p.m - 1);
  EXPECT_TRUE(std::is_sorted(reference.rows().begin(), reference.rows().end()));
  const Expected e = reference.expected(1, 0);
  const size_t row = reference.rows().size() / 2;
  const int64_t m = reference.rows()[row];
  EXPECT_NEAR(e.value[row * size_t(p.n) + 7], at(p.a, inputs.a, m) * at(p.b, inputs.b, 7), 1e-12);
  // A row that is not in the sample must at least be finite.
  std::vector<float> line(size_t(p.n), 1.0f);
  EXPECT_TRUE(check_finite(p, 5, reinterpret_cast<const char*>(line.data())).ok());
  std::memcpy(&line[3], &canary, 4);
  EXPECT_NE(check_finite(p, 5, reinterpret_cast<const char*>(line.data())).detail.find("not written"),
            std::string::npos);
}

// --- buffers
// ------------------------------------------------------------------------------------------------------

TEST(Buffers, CanariesShowEveryStrayWrite) {
  const View view{3, 5, 9, 2, 40};
  for (Guard guard : {Guard::behind, Guard::in_front})
    for (Type type : {Type::f32, Type::f64}) {
      GuardedMatrix matrix("M", type, view, guard, true);
      const int64_t bytes = size_of(type);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(matrix.data()) % uintptr_t(bytes), 0u);
      EXPECT_NE(reinterpret_cast<uintptr_t>(matrix.data()) % 16, 0u) << "no vector alignment";
      matrix.poison();
      EXPECT_EQ(matrix.damage(), "");
      std::memset(matrix.row(1, 2), 0, size_t(5 * bytes)); // elements may change
      EXPECT_EQ(matrix.damage(), "");
      for (char* stray : {matrix.row(0, 0) + 5 * bytes, matrix.row(0, 2) + 6 * bytes, matrix.row(1, 0) - 1}) {
        const char old = *stray;
        *stray = char(old + 1);
        EXPECT_NE(matrix.damage(), "") << stray - matrix.data();
        *stray = old;
        EXPECT_EQ(matrix.damage(), "");
      }
    }
}

TEST(Buffers, PoisonIsNaNInBothTypes) {
  GuardedMatrix narrow("M", Type::f32, View::dense(1, 2, 1), Guard::behind, false);
  GuardedMatrix wide("M", Type::f64, View::dense(1, 2, 1), Guard::behind, false);
  narrow.poison(), wide.poison();
  EXPECT_TRUE(std::isnan(reinterpret_cast<float*>(narrow.data())[1]));
  EXPECT_TRUE(std::isnan(reinterpret_cast<double*>(wide.data())[1]));
}

TEST(Cuts, ShareOutTheGridOnce) {
  const TileRanges full{0, 5, 0, 4, 0, 2};
  for (GridCut cut : {GridCut::whole, GridCut::rows, GridCut::columns, GridCut::entries}) {
    int seen[2][5][4] = {};
    const auto ranges = cut_ranges(full, cut);
    EXPECT_EQ(ranges.size(), cut == GridCut::whole ? 1u : cut == GridCut::entries ? 2u : 3u);
    for (const TileRanges& r : ranges)
      for (int64_t b = r.b0; b < r.b1; ++b)
        for (int64_t m = r.m0; m < r.m1; ++m)
          for (int64_t n = r.n0; n < r.n1; ++n) seen[b][m][n]++;
    for (auto& plane : seen)
      for (auto& row : plane)
        for (int count : row) EXPECT_EQ(count, 1);
  }
}

// --- statistics
// ---------------------------------------------------------------------------------------------------

TEST(Statistics, Quantiles) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(quantile({0, 1, 2, 3, 4}, 0.25), 1);
}

std::vector<double> noise(size_t count, double centre, double width, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(centre, width);
  std::vector<double> values(count);
  for (double& x : values) x = normal(random);
  return values;
}

TEST(Statistics, BootstrapCoversTheMedian) {
  int covered = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    const Interval i = bootstrap_median(noise(30, -0.05, 0.02, seed), seed);
    EXPECT_LE(i.low, i.middle);
    EXPECT_LE(i.middle, i.high);
    EXPECT_LT(i.high - i.low, 0.05);
    covered += i.low <= -0.05 && -0.05 <= i.high;
  }
  EXPECT_GE(covered, 85);
  const Interval once = bootstrap_median({1, 2, 3}, 9), again = bootstrap_median({1, 2, 3}, 9);
  EXPECT_EQ(once.low, again.low);
}

TEST(Statistics, NoiseFloorGrowsWithNoiseAndDrift) {
  EXPECT_EQ(noise_floor({0.1, 0.1}), 0);
  const double quiet = noise_floor(noise(30, 0, 0.002, 1)), loud = noise_floor(noise(30, 0, 0.05, 1));
  EXPECT_LT(quiet, 0.004);
  EXPECT_GT(loud, 5 * quiet);
  std::vector<double> drift = noise(30, 0, 0.002, 1);
  for (size_t i = 20; i < 30; ++i) drift[i] += 0.03;
  EXPECT_GT(noise_floor(drift), 0.02);
  const double more = noise_floor(noise(120, 0, 0.05, 1));
  EXPECT_LT(more, 0.7 * loud) << "more rounds tell more";
}

/// What the floor says of one half of the rounds, the other half differs from it.
TEST(Statistics, NoiseFloorIsWhatTheSameNumberOfRoundsDiffers) {
  int beyond = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const std::vector<double> rounds = noise(60, 0, 0.01, seed), others = noise(60, 0, 0.01, seed + 1000);
    beyond += std::fabs(median(others)) > std::log1p(noise_floor(rounds));
  }
  EXPECT_GE(beyond, 2); // of 200: 5 % if the floor knew the truth
  EXPECT_LE(beyond, 24);
}

// --- devices
// ---------------------------------------------------------------------------------------------------------

TEST(Devices, DescribesTheCpu) {
  const Device d = find_device("cpu");
  EXPECT_TRUE(d.present);
  EXPECT_FALSE(d.name.empty());
  EXPECT_GE(d.isa, 1);
  EXPECT_GE(d.cores, 1);
  EXPECT_GE(d.l1d, 4 << 10);
  EXPECT_EQ(Device::from_json(d.to_json()), d);
  EXPECT_THROW(find_device("riscv"), Error);
  EXPECT_FALSE(list_devices().empty());
}

} // namespace
} // namespace deepgen::measure_test
