// Random (problem, config) pairs of rows, compiled and run against the f64 reference on guarded buffers: all
// kinds, types and options, every level of this host, sizes that break vector code.
#include "measure/values/rows_expected.h"
#include "measure/values/rows_inputs.h"
#include "tests/numerics/numerics.h"
#include "tests/unit/environment.h"

#include <cmath>

namespace deepgen::rows_test {
namespace {

using namespace numerics;

class RandomRows : public testing::TestWithParam<int> {};

TEST_P(RandomRows, MatchTheReference) { check_random_pairs(7000, GetParam(), random_rows); }
INSTANTIATE_TEST_SUITE_P(Share, RandomRows, testing::Range(0, 8));

/// On rows of several blocks.
class EveryRowsValue : public testing::TestWithParam<RowsKind> {};

TEST_P(EveryRowsValue, MatchesTheReference) {
  Rows p;
  p.m = 9, p.n = 17003, p.kind = GetParam(), p.x = p.d = Type::bf16;
  const ValueCounts legal = check_every_value(p);
  EXPECT_EQ(legal.count({"block", 16384}), 1u);
  EXPECT_EQ(legal.count({"stream", 1}), 1u);
  EXPECT_EQ(legal.count({"ahead", 1}), 1u);
}
INSTANTIATE_TEST_SUITE_P(Kinds, EveryRowsValue,
                         testing::Values(RowsKind::softmax, RowsKind::log_softmax, RowsKind::layer_norm,
                                         RowsKind::rms_norm));

/// The longest rows: a sum of 2^20 terms is as exact as a short one.
TEST(Rows, SumsOfAMillionTermsAreExact) {
  for (RowsKind kind : {RowsKind::softmax, RowsKind::log_softmax, RowsKind::layer_norm, RowsKind::rms_norm})
    for (int64_t level : {host_level(), int64_t(1)}) {
      Rows p;
      p.m = 1, p.n = most_row_columns, p.kind = kind;
      const Space space(p, "cpu", device_of_level(level));
      ASSERT_GT(space.size(), 0u);
      const Choice choice = space.default_choice();
      SCOPED_TRACE(p.key() + " | " + choice.text());
      ASSERT_GT(verify_all(compile_candidate(p, "cpu", choice, false, false), choice.text()), 0);
    }
}

/// One column in four, or the first alone, is far from all others: whatever columns layer_norm takes for its
/// first mean, some row has just these apart.
void fill_misleading(std::vector<float>& x, const Rows& p) {
  Rng rng(3);
  std::uniform_real_distribution<float> near_zero(-1, 1);
  for (int64_t m = 0; m < p.m; ++m)
    for (int64_t n = 0; n < p.n; ++n) {
      const bool apart = m + 1 < p.m ? (n >> (m + 2)) % 4 == 0 : n == 0;
      x[size_t(m * p.n + n)] = (apart ? 30000.f : 0.f) + near_zero(rng);
    }
}

TEST(Rows, MeansOfMisleadingColumnsAreCorrected) {
  Rows p;
  p.m = 7, p.n = 9001, p.kind = RowsKind::layer_norm; // groups of 4 to 128 columns, and one column
  std::vector<float> x(size_t(p.m * p.n)), d(x.size());
  fill_misleading(x, p);
  const std::vector<double> exact(x.begin(), x.end());
  std::vector<ExpectedRow> expected;
  for (int64_t m = 0; m < p.m; ++m) expected.emplace_back(p, RowInputs{exact.data() + m * p.n});
  for (int64_t level : {host_level(), int64_t(3), int64_t(1)}) {
    const Space space(p, "cpu", device_of_level(level));
    for (size_t rank = 0; rank < space.size(); ++rank) {
      const Choice choice = space.choice(rank);
      const auto has = [&](const char* name, int64_t value) { return choice.config[name] == value; };
      if (!has("isa", level) || !has("rows", 1) || !has("keep", 0) || !has("stream", 0) || !has("ahead", 0))
        continue;
      const KernelFile file = compile_candidate(p, "cpu", choice, false, false);
      ASSERT_EQ(file.status, "ok") << file.detail;
      RowsCall call;
      call.x = x.data(), call.d = d.data(), call.ldx = call.ldd = p.n;
      LoadedKernel(file.kernels[0]).call(values_of(call));
      for (size_t i = 0; i < d.size(); ++i)
        ASSERT_LE(expected[i / size_t(p.n)].error_of_d(int64_t(i) % p.n, double(d[i])), 1)
            << choice.text() << ", row " << int64_t(i) / p.n << ", column " << int64_t(i) % p.n;
    }
  }
}

/// exp(x) of a softmax, as D[n] / D[0] with X[0] = 0: D[0] is the sum's reciprocal itself, D[n] is rounded
/// once more.
TEST(Rows, ExponentialsAreExactToThreeUnits) {
  constexpr double kUnit = 0x1p-24, kLowest = -70;
  for (int64_t level : {host_level(), int64_t(3), int64_t(1)}) {
    if (level > host_level()) continue;
    Rows p;
    p.m = 1, p.n = 1 << 18;
    const Choice choice = Space(p, "cpu", device_of_level(level)).default_choice();
    const KernelFile file = compile_candidate(p, "cpu", choice, false, false);
    ASSERT_EQ(file.status, "ok") << file.detail;
    std::vector<float> x, d(size_t(p.n));
    for (int64_t n = 0; n < p.n; ++n) x.push_back(float(kLowest * double(n) / double(p.n)));
    const PageBuffer workspace(size_t(file.kernels[0].workspace) + 1);
    RowsCall call;
    call.x = x.data(), call.d = d.data(), call.ldx = call.ldd = p.n, call.workspace = workspace.data();
    LoadedKernel(file.kernels[0]).call(values_of(call));
    double worst = 0;
    for (size_t n = 0; n < x.size(); ++n)
      worst = std::max(worst, std::fabs(double(d[n]) / double(d[0]) / std::exp(double(x[n])) - 1));
    EXPECT_LT(worst, 3.5 * kUnit) << "level " << level;
    EXPECT_GT(worst, 0.5 * kUnit) << "level " << level;
  }
}

/// Whatever the problem and the level, some config is legal.
TEST(Rows, SpaceIsNeverEmpty) {
  Rng rng(11);
  for (size_t i = 0; i < 300; ++i) {
    Rows p = random_rows(rng, i);
    if (i % 5 == 0) p.n = most_row_columns - int64_t(i);
    for (int64_t level : {1, 2, 3, 4}) {
      const Space space(p, "cpu", device_of_level(level));
      ASSERT_GT(space.size(), 0u) << p.key() << " at level " << level;
      EXPECT_EQ(why_illegal(p, "cpu", device_of_level(level), space.default_choice()), "") << p.key();
    }
  }
}

TEST(Rows, CodegenIsDeterministic) {
  const Environment compile_both("DEEPGEN_KEEP_OBJECTS", nullptr);
  const Rows p = Rows::parse("rows m=33 n=777 x=bf16 d=e4m3 kind=layer_norm options=residual+scale");
  const Space space(p, "cpu", device_of_level(4));
  for (size_t rank : {size_t(0), space.size() / 2}) {
    const KernelFile first = compile_candidate(p, "cpu", space.choice(rank), true, true);
    const KernelFile second = compile_candidate(p, "cpu", space.choice(rank), true, true);
    ASSERT_EQ(first.status, "ok") << first.detail;
    EXPECT_EQ(first.serialize(), second.serialize());
  }
}

} // namespace
} // namespace deepgen::rows_test
