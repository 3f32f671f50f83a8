// Verification of rows on the CPU finds what a kernel can do wrong: kernels are jumps into this program.
#include "measure/cpu/rows_cases.h"
#include "measure/cpu/verify_all.h"
#include "measure/process/stopwatch.h"
#include "measure/values/rows_expected.h"
#include "measure/values/stored_values.h"
#include "tests/unit/measure/test_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace deepgen::verify_rows_test {
namespace {

using test_kernels::Entry;

struct RowsFlaws {
  bool drops_last = false;    ///< leaves the last column out of its sums
  bool skips_last = false;    ///< and does not write it
  bool wrong_maximum = false; ///< of all columns but the last
  bool no_epsilon = false;
  bool no_row_scales = false;
  bool one_sweep = false;    ///< the variance as the mean square less the squared mean
  bool rounds_first = false; ///< normalises the residual output instead of the sum
  bool ignores_ld = false;
  int64_t extra = 0; ///< elements that it writes behind a row
  bool writes_x = false;
  bool again = false;    ///< begins with row 0, whatever it is told
  bool lost_nan = false; ///< takes a NaN for 0
};

const std::vector<std::string> kRowsArgs = {"x",   "residual",     "scale",      "bias",           "d",
                                            "ldx", "ld_residual",  "ldd",        "epsilon",        "m0",
                                            "m1",  "residual_out", "row_scales", "ld_residual_out"};

const Rows& softmax_problem() {
  static const Rows p = Rows::parse("rows m=13 n=37 x=f32 d=f32 kind=softmax options=none");
  return p;
}
const Rows& norm_problem() {
  static const Rows p =
      Rows::parse("rows m=13 n=37 x=bf16 d=bf16 kind=layer_norm options=residual+output_residual+scale+bias");
  return p;
}
const Rows& quantised_problem() {
  static const Rows p = Rows::parse("rows m=13 n=37 x=f32 d=i8 kind=rms_norm options=scale");
  return p;
}

template <typename T>
T* pointer(uint64_t x) {
  return reinterpret_cast<T*>(x);
}

double normalised(const Rows& p, const std::vector<double>& x, double y, double epsilon,
                  const RowsFlaws& flaws) {
  const size_t used = x.size() - (flaws.drops_last ? 1 : 0);
  double sum = 0, squares = 0, maximum = -INFINITY;
  for (size_t n = 0; n + (flaws.wrong_maximum ? 1 : 0) < x.size(); ++n) maximum = std::max(maximum, x[n]);
  for (size_t n = 0; n < used; ++n) sum += x[n], squares += x[n] * x[n];
  if (p.kind == RowsKind::softmax) {
    float total = 0;
    for (size_t n = 0; n < used; ++n) total += float(std::exp(float(x[n] - maximum)));
    return float(std::exp(float(y - maximum))) / total;
  }
  const auto count = double(x.size());
  if (flaws.no_epsilon) epsilon = 0;
  if (p.kind == RowsKind::rms_norm) return y / std::sqrt(squares / count + epsilon);
  const double mean = sum / count;
  double variance = 0;
  for (size_t n = 0; n < used; ++n) variance += (x[n] - mean) * (x[n] - mean);
  variance /= count;
  if (flaws.one_sweep) variance = float(squares / count) - float(mean) * float(mean);
  return (y - mean) / std::sqrt(variance + epsilon);
}

[[gnu::noipa]] void rows_kernel(const Rows& p, const uint64_t* a, const RowsFlaws& flaws) {
  const auto ldx = flaws.ignores_ld ? p.n : int64_t(a[5]);
  for (uint64_t m = flaws.again ? 0 : a[9]; m < a[10]; ++m) {
    const auto row = int64_t(m);
    std::vector<double> x, y;
    for (int64_t n = 0; n < p.n; ++n) {
      double v = decoded(p.x, pointer<void>(a[0]), row * ldx + n);
      if (p.residual) v += decoded(p.x, pointer<void>(a[1]), row * int64_t(a[6]) + n);
      if (p.output_residual) encode(p.x, v, pointer<void>(a[11]), row * int64_t(a[13]) + n);
      if (flaws.rounds_first) v = decoded(p.x, pointer<void>(a[11]), row * int64_t(a[13]) + n);
      x.push_back(flaws.lost_nan && std::isnan(v) ? 0 : v);
    }
    double most = 0;
    for (int64_t n = 0; n < p.n; ++n) {
      double v = normalised(p, x, x[size_t(n)], test_kernels::as_float(a[8]), flaws);
      if (p.scale) v *= decoded(p.x, pointer<void>(a[2]), n);
      if (p.bias) v += decoded(p.x, pointer<void>(a[3]), n);
      y.push_back(v);
      if (std::isnan(v) || std::fabs(v) > most) most = std::fabs(v);
    }
    if (p.quantised() && !flaws.no_row_scales)
      encode(Type::f32, most / p.quantised_most(), pointer<void>(a[12]), row);
    for (int64_t n = 0; n < p.n + flaws.extra - (flaws.skips_last ? 1 : 0); ++n) {
      const double v = n < p.n ? y[size_t(n)] : 0;
      const int64_t at = row * int64_t(a[7]) + n;
      if (!p.quantised()) {
        encode(p.d, v, pointer<void>(a[4]), at);
        continue;
      }
      const double q = most == 0 ? 0 : v / (most / p.quantised_most());
      pointer<int8_t>(a[4])[at] = std::isnan(q) ? int8_t(0) : int8_t(std::lrint(q));
    }
    if (flaws.writes_x) pointer<float>(a[0])[0] = 1;
  }
}

/// An entry for each set of flaws: what is jumped to has no captures.
template <const Rows& (*problem)(), int number>
struct Flawed {
  static inline RowsFlaws flaws;
  static void entry(const uint64_t* a) { rows_kernel(problem(), a, flaws); }
};

template <const Rows& (*problem)(), int number>
Record verdict_on(const RowsFlaws& flaws) {
  Flawed<problem, number>::flaws = flaws;
  Kernel k;
  k.role = "main", k.problem = problem(), k.choice = {"test", Config::parse("x=1")};
  k.args = kRowsArgs, k.tiles_m = problem().m;
  k.code = test_kernels::jump_to(&Flawed<problem, number>::entry);
  RowsCases cases(problem(), 1);
  Candidate c;
  c.file.problem = problem(), c.file.kernels = {k};
  c.record.status.clear();
  VerifyOptions options;
  options.deadline = wall_seconds() + 60;
  Progress progress("test");
  verify_all({&c}, cases, options, progress);
  return c.record;
}

void expect_status(const Record& r, const std::string& status, const std::string& detail = "") {
  EXPECT_EQ(r.status, status) << r.detail;
  EXPECT_NE(r.detail.find(detail), std::string::npos) << r.detail;
}

TEST(VerifyRows, AcceptsCorrectKernels) {
  for (const Record& r : {verdict_on<softmax_problem, 0>({}), verdict_on<norm_problem, 0>({}),
                          verdict_on<quantised_problem, 0>({})}) {
    expect_status(r, "");
    EXPECT_GT(r.error, 0);
    EXPECT_LE(r.error, 1);
  }
}

TEST(VerifyRows, FindsADroppedColumn) {
  expect_status(verdict_on<softmax_problem, 1>({.drops_last = true}), "wrong", "D, row");
  expect_status(verdict_on<norm_problem, 1>({.drops_last = true}), "wrong", "D, row");
  expect_status(verdict_on<softmax_problem, 2>({.skips_last = true}), "wrong", "column 36");
}

TEST(VerifyRows, FindsAWrongMaximum) {
  expect_status(verdict_on<softmax_problem, 3>({.wrong_maximum = true}), "wrong", "special values");
}

TEST(VerifyRows, FindsAMissingEpsilon) {
  expect_status(verdict_on<norm_problem, 4>({.no_epsilon = true}), "wrong", "dense");
  expect_status(verdict_on<quantised_problem, 4>({.no_epsilon = true}), "wrong", "row_scales");
}

TEST(VerifyRows, FindsMissingRowScales) {
  expect_status(verdict_on<quantised_problem, 5>({.no_row_scales = true}), "wrong", "row_scales, row 0");
}

TEST(VerifyRows, FindsAVarianceThatCancels) {
  expect_status(verdict_on<norm_problem, 6>({.one_sweep = true}), "wrong", "special values");
}

TEST(VerifyRows, FindsASumThatWasRoundedFirst) {
  expect_status(verdict_on<norm_problem, 7>({.rounds_first = true}), "wrong");
}

TEST(VerifyRows, FindsStrayWrites) {
  expect_status(verdict_on<softmax_problem, 8>({.extra = 1}), "out_of_bounds", "");
  expect_status(verdict_on<norm_problem, 8>({.extra = 1}), "out_of_bounds", "");
  expect_status(verdict_on<quantised_problem, 8>({.extra = 1}), "out_of_bounds", "");
  expect_status(verdict_on<softmax_problem, 9>({.writes_x = true}), "out_of_bounds", "X");
}

TEST(VerifyRows, FindsWrongRows) {
  expect_status(verdict_on<softmax_problem, 10>({.ignores_ld = true}), "wrong", "padded");
  expect_status(verdict_on<softmax_problem, 11>({.again = true}), "wrong", "D in X");
}

TEST(VerifyRows, FindsALostNaN) {
  expect_status(verdict_on<softmax_problem, 12>({.lost_nan = true}), "wrong", "special values");
}

/// Its mean rounds, so that a kernel quantises what is left. A row of zeros leaves nothing.
TEST(VerifyRows, TakesAnyNumberForARowOfRoundingAlone) {
  const Rows p = Rows::parse("rows m=1 n=82 x=bf16 d=e4m3 kind=layer_norm options=none");
  const std::vector<double> far(82, 1000), zeros(82, 0);
  const ExpectedRow rounding(p, {far.data(), nullptr, nullptr, nullptr, 0.125});
  const ExpectedRow nothing(p, {zeros.data(), nullptr, nullptr, nullptr, 0.125});
  EXPECT_LE(rounding.error_of_d(3, 224), 1);
  EXPECT_LE(rounding.error_of_d(3, 0), 1);
  EXPECT_GT(rounding.error_of_d(3, NAN), 1);
  EXPECT_GT(rounding.error_of_scale(0.01), 1);
  EXPECT_LE(nothing.error_of_d(3, 0), 1);
  EXPECT_GT(nothing.error_of_d(3, 224), 1);
}

TEST(StoredValues, RoundToNearestEven) {
  char data[8];
  const auto through = [&](Type type, double x) {
    encode(type, x, data, 0);
    return decoded(type, data, 0);
  };
  EXPECT_EQ(through(Type::bf16, 1 + 0x1p-8), 1);
  EXPECT_EQ(through(Type::bf16, 1 + 0x1.8p-7), 1 + 0x1p-6);
  EXPECT_EQ(through(Type::f16, 1 + 0x1p-11), 1);
  EXPECT_EQ(through(Type::f16, 65519), 65504);
  EXPECT_EQ(through(Type::f16, 65520), INFINITY);
  EXPECT_EQ(through(Type::f16, 0x1.8p-24), 0x1p-23);
  EXPECT_EQ(through(Type::f16, -0x1p-14), -0x1p-14);
  EXPECT_TRUE(std::isnan(through(Type::f16, NAN)));
  EXPECT_TRUE(std::isnan(through(Type::bf16, std::numeric_limits<double>::quiet_NaN())));
  data[0] = 0x7e, data[1] = 0x01, data[2] = char(0xff), data[3] = char(0x81);
  EXPECT_EQ(decoded(Type::e4m3, data, 0), 448);
  EXPECT_EQ(decoded(Type::e4m3, data, 1), 0x1p-9);
  EXPECT_TRUE(std::isnan(decoded(Type::e4m3, data, 2)));
  EXPECT_EQ(decoded(Type::i8, data, 3), -127);
}

} // namespace
} // namespace deepgen::verify_rows_test
