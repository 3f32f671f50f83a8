// What verification of attention looks at: a fault in any tile of any head is found, though most rows of a
// large call are not compared.
#include "measure/cpu/subject.h"
#include "measure/values/attention/attention_case.h"
#include "measure/values/attention/attention_truth.h"
#include "measure/values/attention/host_threads.h"
#include "measure/values/stored_values.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <sys/resource.h>
#include <utility>

namespace deepgen::attention_comparison_test {
namespace {

constexpr int64_t kQueries = 300, kHeads = 4, kDimension = 8, kBatch = 2;

Attention attention_problem() {
  return Attention::parse(
      "attention heads=4 kv_heads=2 head_dim=8 value_dim=8 q=f32 kv=f32 out=f32 mask=causal "
      "queries=1000 keys=1000 options=varlen+lse at_batch=1 at_queries=1 at_keys=1");
}

/// A right result of a call, as dense out and lse.
class RightResult {
public:
  explicit RightResult(double most_products)
      : problem(attention_problem()), inputs(problem, shape(), 7),
        check(problem, inputs, Type::f32, most_products, 7), lse(size_t(inputs.lse_count(problem))),
        out(size_t(inputs.out_layout.rows() * inputs.out_layout.columns())) {
    const AttentionReference reference(problem, inputs);
    for (int64_t b = 0; b < kBatch; ++b)
      for (int64_t g = 0; g < problem.kv_heads; ++g) {
        std::vector<AttentionReference::Row> rows;
        for (int64_t h = 2 * g; h < 2 * g + 2; ++h)
          for (int64_t t = 0; t < kQueries; ++t) rows.push_back({t, h});
        const std::vector<ExpectedAttention> expected = reference.rows(b, g, rows);
        for (size_t i = 0; i < rows.size(); ++i) {
          for (int64_t d = 0; d < kDimension; ++d)
            *at(b, rows[i].token, rows[i].head, d) = float(expected[i].value[size_t(d)]);
          lse[size_t(inputs.lse_index(problem, b, rows[i].token, rows[i].head))] = float(expected[i].lse);
        }
      }
  }

  float* at(int64_t entry, int64_t token, int64_t head, int64_t d) {
    const TokenLayout& layout = inputs.out_layout;
    return out.data() + layout.row(entry, token, head) * layout.columns() + layout.column(head) + d;
  }
  AttentionComparison::OutRow rows() const {
    return [this](int64_t r) {
      return reinterpret_cast<const char*>(out.data() + r * inputs.out_layout.columns());
    };
  }
  std::string verdict() const { return check.compare(rows(), lse.data()).status; }

  const Attention problem;
  const AttentionInputs inputs;
  const AttentionComparison check;
  std::vector<float> lse;

private:
  static AttentionShape shape() {
    AttentionShape s;
    s.batch = kBatch, s.queries = kQueries, s.keys = 333;
    return s;
  }
  std::vector<float> out;
};

TEST(AttentionComparison, AFaultInAnyTileOfAnyHeadIsFound) {
  RightResult result(1);
  EXPECT_EQ(result.verdict(), "ok");
  EXPECT_LT(result.check.rows(), size_t(kBatch * kHeads * kQueries / 20)) << "a sample";
  for (int64_t b = 0; b < kBatch; ++b)
    for (int64_t h = 0; h < kHeads; ++h)
      for (int64_t first = 0; first < kQueries; first += sampled_tile) {
        const auto move = [&](float by) {
          for (int64_t t = first; t < std::min(first + sampled_tile, kQueries); ++t)
            *result.at(b, t, h, 5) += by;
        };
        move(0.01f);
        EXPECT_EQ(result.verdict(), "wrong") << "entry " << b << ", head " << h << ", tile at " << first;
        move(-0.01f);
      }
}

/// Of the rows at its ends, and of lse.
TEST(AttentionComparison, AFaultInTheFirstOrLastRowIsFound) {
  RightResult result(1);
  for (int64_t t : {int64_t(0), kQueries - 1}) {
    float& x = *result.at(1, t, 2, 0);
    x += 0.01f;
    EXPECT_EQ(result.verdict(), "wrong") << t;
    x -= 0.01f;
    float& sum = result.lse[size_t(result.inputs.lse_index(result.problem, 1, t, 2))];
    sum += 0.01f;
    EXPECT_EQ(result.verdict(), "wrong") << t;
    sum -= 0.01f;
  }
}

TEST(AttentionComparison, OfASmallCallEveryRowIsCompared) {
  RightResult result(most_attention_products);
  EXPECT_EQ(result.check.rows(), size_t(kBatch * kHeads * kQueries));
  *result.at(0, 150, 3, 7) += 0.01f;
  EXPECT_EQ(result.verdict(), "wrong");
}

/// Borders of tiles: each is the first or the last row of a tile in some head.
TEST(AttentionComparison, BordersOfTilesAreCompared) {
  std::vector<int> first(4), last(4);
  for (int64_t head = 0; head < 3; ++head) {
    for (int64_t t : compared_tokens(256, 0, head, 0, 9))
      first[size_t(t / 64)] += t % 64 == 0, last[size_t(t / 64)] += t % 64 == 63;
  }
  for (size_t tile = 0; tile < 4; ++tile) {
    EXPECT_GE(first[tile], 1) << tile;
    EXPECT_GE(last[tile], 1) << tile;
  }
}

/// All that is written is looked at: what is no number, or greater than any value.
TEST(AttentionComparison, NoElementIsBeyondTheValues) {
  RightResult result(1);
  EXPECT_EQ(result.check.check_finite(result.rows()).status, "ok");
  for (float wrong : {NAN, INFINITY, -INFINITY, 1.1f, -1.1f}) {
    float& x = *result.at(1, 77, 1, 3);
    const float before = std::exchange(x, wrong);
    const Verdict found = result.check.check_finite(result.rows());
    EXPECT_EQ(found.status, "wrong") << wrong;
    EXPECT_NE(found.detail.find("column " + std::to_string(kDimension + 3)), std::string::npos)
        << found.detail;
    x = before;
  }
}

/// The most memory that the process has had, in bytes.
int64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t(usage.ru_maxrss) << 10;
}

/// Held against a softmax that is written down plainly; of so many keys that scores are computed in
/// stretches. What a thread holds does not grow with keys: 16 rows of these would have 256 MiB of scores.
TEST(AttentionReference, MemoryDoesNotGrowWithKeys) {
  constexpr int64_t keys = (int64_t(1) << 21) - 5, heads = 16;
  const Attention p = Attention::parse(
      "attention heads=16 kv_heads=1 head_dim=1 value_dim=1 q=f32 kv=f32 out=f32 mask=window queries=3 "
      "keys=16777216 options=lse+softcap+sink at_batch=1 at_queries=1 at_keys=1");
  AttentionShape s;
  s.queries = 3, s.keys = keys, s.left = 400000, s.right = 1, s.softcap = 6;
  const AttentionInputs in(p, s, 5);
  std::vector<AttentionReference::Row> places;
  for (int64_t h = 0; h < heads; ++h) places.push_back({h % 3, h});
  const int64_t before = peak_memory();
  const std::vector<ExpectedAttention> found = AttentionReference(p, in).rows(0, 0, places);
  EXPECT_LT(peak_memory() - before, int64_t(100) << 20);
  for (const int64_t h : {0, 1, 5}) {
    const AttentionReference::Row& row = places[size_t(h)];
    const auto [from, to] = AttentionReference(p, in).seen(0, row.token);
    ASSERT_GT(from, 0);
    double sum = std::exp(double(in.sink[size_t(h)])), out = 0;
    const double q = decoded(Type::f32, in.q.data(), row.token * heads + h);
    for (int64_t j = from; j < to; ++j) {
      const double weight = std::exp(6 * std::tanh(q * decoded(Type::f32, in.key.data(), j) / 6));
      sum += weight, out += weight * decoded(Type::f32, in.value.data(), j);
    }
    EXPECT_NEAR(found[size_t(h)].value[0], out / sum, 1e-10 * std::fabs(out / sum) + 1e-12) << h;
    EXPECT_NEAR(found[size_t(h)].lse, std::log(sum), 1e-10) << h;
  }
}

/// Behind the softcap, before the mask.
TEST(AttentionReference, ABiasIsAddedToCappedScores) {
  const Attention p = Attention::parse(
      "attention heads=2 kv_heads=1 head_dim=1 value_dim=1 q=f32 kv=f32 out=f32 mask=causal queries=9 "
      "keys=9 options=lse+softcap bias=bf16 at_batch=1 at_queries=1 at_keys=1");
  AttentionShape s;
  s.batch = 2, s.queries = 3, s.keys = 9, s.softcap = 2;
  const AttentionInputs in(p, s, 5);
  const AttentionReference reference(p, in);
  int hidden = 0, seen = 0;
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t t = 0; t < 3; ++t)
      for (int64_t h = 0; h < 2; ++h) {
        const ExpectedAttention found = reference.rows(b, 0, {{t, h}})[0];
        double sum = 0, out = 0;
        const double q = decoded(Type::f32, in.q.data(), (b * 3 + t) * 2 + h);
        for (int64_t j = 0; j <= t + 6; ++j) {
          const double bias = decoded(Type::bf16, in.bias.data(), ((b * 2 + h) * 3 + t) * 9 + j);
          (bias < -most_bias ? hidden : seen)++;
          const double key = decoded(Type::f32, in.key.data(), b * 9 + j);
          const double weight = std::exp(2 * std::tanh(q * key / 2) + bias);
          sum += weight, out += weight * decoded(Type::f32, in.value.data(), b * 9 + j);
        }
        if (sum == 0) {
          EXPECT_EQ(found.value[0], 0);
          EXPECT_EQ(found.lse, -INFINITY);
          continue;
        }
        EXPECT_NEAR(found.value[0], out / sum, 1e-12);
        EXPECT_NEAR(found.lse, std::log(sum), 1e-12);
        EXPECT_GT(found.error_of_lse(std::log(sum) + 1e-3), 1);
      }
  EXPECT_GT(hidden, 0);
  EXPECT_GT(seen, 20);
}

/// gfx90a may take subnormal f16 of V for zeros, and nothing else.
TEST(AttentionReference, SubnormalValuesMayBeLostWhereTheChipLosesThem) {
  const Attention p = Attention::parse(
      "attention heads=1 kv_heads=1 head_dim=1 value_dim=2 q=f16 kv=f16 out=f16 mask=none queries=1 keys=1 "
      "options=none at_batch=1 at_queries=1 at_keys=1");
  AttentionInputs in(p, AttentionShape(), 5);
  const uint16_t values[] = {0x0200, 0x0800}; // 2^-15 and 2^-13
  std::memcpy(in.value.data(), values, sizeof values);
  const auto of = [&](const char* target) {
    const ExpectedAttention x =
        AttentionReference(p, in, AttentionArithmetic::of(p, target)).rows(0, 0, {{0, 0}})[0];
    EXPECT_EQ(x.value, (std::vector<double>{0x1p-15, 0x1p-13}));
    EXPECT_LE(x.error_of_out(p.out, 0, 0x1p-15), 1);
    return std::pair(x.error_of_out(p.out, 0, 0), x.error_of_out(p.out, 1, 0));
  };
  EXPECT_LE(of("gfx90a").first, 1);
  EXPECT_GT(of("gfx90a").second, 1);
  EXPECT_GT(of("gfx942").first, 1);
  EXPECT_GT(of("sm_90").first, 1);
}

/// In verification and in timing; and one that shows more is wrong.
TEST(AttentionWindow, ATunedCallHasIt) {
  const Problem problem = Problem::parse(
      "attention heads=2 kv_heads=1 head_dim=8 value_dim=8 q=f32 kv=f32 out=f32 mask=window queries=60 "
      "keys=99 options=lse window=7,2 at=1x1x99+2x40x90");
  const std::vector<AttentionCase> cases = cases_for(problem.attention());
  for (size_t i : {0, 1}) {
    EXPECT_EQ(std::string(cases[i].name), "as tuned");
    EXPECT_EQ(cases[i].shape.left, 7);
    EXPECT_EQ(cases[i].shape.right, 2);
  }
  EXPECT_EQ(cases[1].shape.queries, 40);
  EXPECT_EQ(cases[2].shape.left, -1) << "other calls have none";
  const Problem one = problem.at({40, 90, 1, 2});
  const AttentionShape shape = tuned_shape(one.attention());
  EXPECT_EQ(shape, cases[1].shape);
  const auto subject = subject_of(one.attention());
  const SlotValues values = subject->operands(0, 1)->values();
  EXPECT_EQ(int64_t(values[DEEPGEN_ARG_WINDOW_LEFT]), 7);
  EXPECT_EQ(int64_t(values[DEEPGEN_ARG_WINDOW_RIGHT]), 2);
  EXPECT_NE(subject->baseline().why_not.find("what no window shows"), std::string::npos);
  AttentionShape wider = shape;
  wider.left = 8;
  const AttentionInputs inputs(one.attention(), shape, 3), more(one.attention(), wider, 3); // the same values
  const AttentionReference right(one.attention(), inputs), wrong(one.attention(), more);
  const std::vector<AttentionReference::Row> row = {{20, 1}};
  EXPECT_GT(right.rows(1, 0, row)[0].error_of_lse(wrong.rows(1, 0, row)[0].lse), 1);
}

TEST(AttentionTruth, IsMadeOnceForAllKernelsOfASearch) {
  Attention p = attention_problem();
  AttentionShape s;
  s.queries = 20, s.keys = 30;
  const auto first = attention_truth(p, s, Type::bf16, 1e6, 1);
  p.at_queries = 17, p.at_left = 3; // as of an awkward kernel, and of another window
  EXPECT_EQ(attention_truth(p, s, Type::bf16, 1e6, 1), first);
  EXPECT_NE(attention_truth(p, s, Type::f32, 1e6, 1), first);
  EXPECT_NE(attention_truth(p, s, {Type::bf16, true}, 1e6, 1), first);
  EXPECT_NE(attention_truth(p, s, Type::bf16, 1e6, 2), first);
  s.gap = 1;
  EXPECT_NE(attention_truth(p, s, Type::bf16, 1e6, 1), first);
  p.mask = AttentionMask::none, s.gap = 0;
  EXPECT_NE(attention_truth(p, s, Type::bf16, 1e6, 1), first);
}

TEST(HostThreads, DoEachTaskOnce) {
  std::vector<std::atomic<int>> done(1000);
  on_host_threads(1000, [&](int64_t i) { ++done[size_t(i)]; });
  for (const std::atomic<int>& count : done) EXPECT_EQ(count, 1);
  EXPECT_THROW(on_host_threads(50, [](int64_t i) { i == 31 ? throw std::runtime_error("31") : void(); }),
               std::runtime_error);
  on_host_threads(0, [](int64_t) { FAIL(); });
}

/// Sign, exponent and fraction of all numbers of 16 bits.
TEST(StoredValues, EveryF16IsDecoded) {
  std::vector<uint16_t> all(1 << 16);
  for (size_t i = 0; i < all.size(); ++i) all[i] = uint16_t(i);
  std::vector<double> many(all.size());
  decode(Type::f16, all.data(), 0, int64_t(all.size()), many.data());
  for (size_t i = 0; i < all.size(); ++i) {
    const int exponent = int(i >> 10 & 31), fraction = int(i & 1023);
    const double sign = i >> 15 ? -1 : 1, found = decoded(Type::f16, all.data(), int64_t(i));
    if (exponent == 31 && fraction) {
      EXPECT_TRUE(std::isnan(found) && std::isnan(many[i])) << i;
      continue;
    }
    const double expected = exponent == 31 ? sign * INFINITY
                            : exponent     ? sign * std::ldexp(1024 + fraction, exponent - 25)
                                           : sign * std::ldexp(fraction, -24);
    EXPECT_EQ(found, expected) << i;
    EXPECT_EQ(many[i], expected) << i;
  }
}

TEST(StoredValues, EveryE4m3IsStoredAsItIs) {
  for (int bits = 0; bits < 256; ++bits) {
    const auto code = uint8_t(bits);
    double many = 0;
    decode(Type::e4m3, &code, 0, 1, &many);
    uint8_t again = 0;
    encode(Type::e4m3, many, &again, 0);
    if ((bits & 0x7f) == 0x7f)
      EXPECT_TRUE(std::isnan(many) && (again & 0x7f) == 0x7f) << bits;
    else
      EXPECT_EQ(again, code) << many;
  }
  const auto stored = [](double x) {
    uint8_t code = 0;
    encode(Type::e4m3, x, &code, 0);
    return decoded(Type::e4m3, &code, 0);
  };
  EXPECT_EQ(stored(17), 16) << "to even";
  EXPECT_EQ(stored(19), 20) << "to even";
  EXPECT_EQ(stored(15.75), 16) << "carries into the exponent";
  EXPECT_EQ(stored(-0x1p-10), 0);
  EXPECT_EQ(stored(-0x1.1p-10), -0x1p-9);
  EXPECT_EQ(stored(1e9), 448);
}

/// A key whose value is left out, of keys of like weight: more than what rounding may do.
TEST(AttentionComparison, ALostKeyOfE4m3IsFound) {
  const Attention p = Attention::parse(
      "attention heads=1 kv_heads=1 head_dim=64 value_dim=16 q=e4m3 kv=e4m3 out=f32 mask=none queries=8 "
      "keys=40 options=lse at_batch=1 at_queries=8 at_keys=40");
  AttentionShape all;
  all.queries = 8, all.keys = 40;
  AttentionShape fewer = all;
  fewer.keys = 39;
  const AttentionInputs inputs(p, all, 3), less(p, fewer, 3); // the same values, but for the last key
  const std::vector<AttentionReference::Row> rows = {{0, 0}, {3, 0}, {7, 0}};
  const auto right = AttentionReference(p, inputs, Type::e4m3).rows(0, 0, rows);
  const auto wrong = AttentionReference(p, less, Type::e4m3).rows(0, 0, rows);
  double worst = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_LE(right[i].error_of_out(p.out, 0, right[i].value[0]), 1);
    for (int64_t d = 0; d < p.value_dim; ++d)
      worst = std::max(worst, right[i].error_of_out(p.out, d, wrong[i].value[size_t(d)]));
    worst = std::max(worst, right[i].error_of_lse(wrong[i].lse));
  }
  EXPECT_GT(worst, 1);
}

TEST(StoredValues, TheFirstElementBeyondIsFound) {
  for (Type type : {Type::f32, Type::f16, Type::bf16, Type::e4m3}) {
    std::vector<char> data(size_t(1000 * size_of(type)), 0);
    EXPECT_EQ(first_beyond(type, data.data(), 1000, 1), -1);
    encode(type, -1, data.data(), 3);
    EXPECT_EQ(first_beyond(type, data.data(), 1000, 1), -1) << "1 is not beyond";
    encode(type, -1.25, data.data(), 997), encode(type, 2, data.data(), 998);
    EXPECT_EQ(first_beyond(type, data.data(), 1000, 1), 997);
  }
}

} // namespace
} // namespace deepgen::attention_comparison_test
