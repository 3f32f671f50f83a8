// Random (problem, config) pairs of attention, compiled and run against the f64 reference on guarded buffers:
// all masks, types and options, every level of this host, shapes that break blocks; and what is known to go
// wrong elsewhere, each with its name.
#include "measure/cpu/attention_cases.h"
#include "measure/values/stored_values.h"
#include "tests/numerics/numerics.h"
#include "tests/unit/environment.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace deepgen::attention_test {
namespace {

using namespace numerics;

/// The mask, types and options alternate with `index`.
Attention random_attention(Rng& rng, size_t index) {
  const Type types[] = {Type::f32, Type::f32, Type::bf16, Type::f16};
  Attention p;
  p.mask = AttentionMask(index % 4);
  p.kv = types[index / 4 % 4], p.q = rng() % 4 ? p.kv : Type::f32, p.out = rng() % 4 ? p.q : types[rng() % 4];
  p.kv_heads = between(rng, 1, 2), p.heads = p.kv_heads * pick(rng, {1, 1, 2, 3, 4, 7, 8});
  p.head_dim = pick(rng, {16, 32, 40, 64, 64, 80, 96, 128, 1, 5, 33, 192});
  p.value_dim = rng() % 4 ? p.head_dim : pick(rng, {1, 7, 32, 64, 100, 128});
  p.queries = awkward_size(rng), p.keys = rng() % 8 ? awkward_size(rng) : between(rng, 500, 700);
  p.at_batch = between(rng, 1, 2), p.at_queries = p.queries, p.at_keys = p.keys;
  p.varlen = rng() % 2, p.lse = rng() % 2, p.softcap = rng() % 4 == 0, p.sink = rng() % 4 == 0;
  if (rng() % 2) p.page_size = pick(rng, {16, 64, 1, 4, 128});
  if (rng() % 2) p.bias = types[1 + rng() % 3];
  validate(p);
  return p;
}

class RandomAttention : public testing::TestWithParam<int> {};

TEST_P(RandomAttention, MatchesTheReference) { check_random_pairs(25000, GetParam(), random_attention); }
INSTANTIATE_TEST_SUITE_P(Share, RandomAttention, testing::Range(0, 5));

/// Few rows of a head of K, whose keys and values are read where they lie: on each level, all of a problem's
/// configs that do so are among those drawn.
TEST(Attention, KeysAndValuesInPlaceMatchTheReference) {
  Rng rng(31);
  for (size_t i = 0; i < 64; ++i) {
    Attention p = random_attention(rng, i);
    const int64_t group = pick(rng, {1, 2, 3, 4, 5, 7, 8});
    p.heads = p.kv_heads * group, p.queries = p.at_queries = between(rng, 1, 8 / group);
    validate(p);
    const int64_t level = std::min(host_level(), pick(rng, {4, 4, 3, 1}));
    const Space space(p, "cpu", device_of_level(level));
    std::vector<Choice> direct;
    for (size_t rank = 0; rank < space.size(); ++rank)
      if (const Choice choice = space.choice(rank); choice.config["direct"]) direct.push_back(choice);
    ASSERT_FALSE(direct.empty()) << p.key() << " at level " << level;
    const Choice& choice = direct[rng() % direct.size()];
    SCOPED_TRACE(p.key() + " | " + choice.text());
    EXPECT_GT(verify_all(compile_candidate(p, "cpu", choice, true, i % 10 == 0), choice.text()), 0);
    if (HasFailure()) return;
  }
}

TEST(Attention, EveryValueMatchesTheReference) {
  Attention p;
  p.heads = 4, p.kv_heads = 1, p.head_dim = 64, p.value_dim = 64, p.mask = AttentionMask::causal;
  p.queries = p.at_queries = 150, p.keys = p.at_keys = 600, p.lse = true;
  const ValueCounts legal = check_every_value(p);
  EXPECT_EQ(legal.count({"bk", 256}), 1u);
  EXPECT_EQ(legal.count({"nv", 4}), 1u);
}

/// Whatever the problem and the level, some config is legal.
TEST(Attention, SpaceIsNeverEmpty) {
  Rng rng(12);
  for (size_t i = 0; i < 200; ++i) {
    Attention p = random_attention(rng, i);
    if (i % 5 == 0) p.head_dim = p.value_dim = most_head_dim;
    if (i % 7 == 0) p.queries = p.keys = most_tokens, p.at_keys = 100000;
    for (int64_t level : {1, 2, 3, 4}) {
      const Space space(p, "cpu", device_of_level(level));
      ASSERT_GT(space.size(), 0u) << p.key() << " at level " << level;
      EXPECT_EQ(why_illegal(p, "cpu", device_of_level(level), space.default_choice()), "") << p.key();
    }
  }
}

TEST(Attention, CodegenIsDeterministic) {
  const Environment compile_both("DEEPGEN_KEEP_OBJECTS", nullptr);
  const Attention p =
      Attention::parse("attention heads=6 kv_heads=2 head_dim=40 value_dim=72 q=bf16 kv=f16 out=f32 "
                       "mask=window queries=300 keys=900 "
                       "options=varlen+lse+softcap+sink at_batch=1 at_queries=300 at_keys=900");
  const Space space(p, "cpu", device_of_level(4));
  for (size_t rank : {size_t(0), space.size() / 2}) {
    const KernelFile first = compile_candidate(p, "cpu", space.choice(rank), true, true);
    const KernelFile second = compile_candidate(p, "cpu", space.choice(rank), true, true);
    ASSERT_EQ(first.status, "ok") << first.detail;
    EXPECT_EQ(first.serialize(), second.serialize());
  }
}

/// A compiled kernel of the default config, and calls of it.
class Compiled {
public:
  explicit Compiled(const std::string& key, int64_t level = host_level())
      : problem_(Attention::parse(key)),
        file_(compile_candidate(
            problem_, "cpu", Space(problem_, "cpu", device_of_level(level)).default_choice(), false, false)),
        workspace_(size_t(file_.kernels.at(0).workspace) + 1) {}

  struct Result {
    std::vector<float> out, lse;
  };
  /// `change` may overwrite the inputs. Outputs begin as NaN.
  Result run(const AttentionShape& shape,
             const std::function<void(AttentionInputs&)>& change = nullptr) const {
    AttentionInputs in(problem_, shape, 3);
    if (change) change(in);
    Result r;
    r.out.assign(size_t(in.out_layout.rows() * in.out_layout.columns()), NAN);
    r.lse.assign(size_t(in.lse_count(problem_)), NAN);
    AttentionCall call;
    call.q = in.q.data(), call.key = in.key.data(), call.value = in.value.data(), call.out = r.out.data();
    call.lse = r.lse.data(), call.sink = in.sink.data(), call.shape = &in.shape;
    call.bias = in.bias.data(), call.bias_layout = &in.bias_layout;
    call.q_layout = &in.q_layout, call.key_layout = &in.key_layout;
    call.value_layout = &in.value_layout, call.out_layout = &in.out_layout;
    if (!in.query_offsets.empty()) call.query_offsets = in.query_offsets.data();
    if (!in.key_offsets.empty()) call.key_offsets = in.key_offsets.data();
    if (!in.shape.keys_used.empty()) call.keys_used = in.shape.keys_used.data();
    if (!in.pages.table.empty()) call.page_table = in.pages.table.data();
    call.workspace = workspace_.data();
    LoadedKernel(file_.kernels.at(0)).call(values_of(problem_, call));
    return r;
  }
  const Attention& problem() const { return problem_; }

private:
  Attention problem_;
  KernelFile file_;
  PageBuffer workspace_;
};

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

std::string key_of(const std::string& mask, const std::string& options) {
  return "attention heads=2 kv_heads=1 head_dim=32 value_dim=32 q=f32 kv=f32 out=f32 mask=" + mask +
         " queries=2048 keys=4096 options=" + options + " at_batch=1 at_queries=64 at_keys=256";
}

/// flashinfer#4452: a finite lse in rows that the mask hides all keys from.
TEST(AttentionElsewhere, RowsBeforeTheFirstKeyAreEmpty) {
  AttentionShape s;
  s.queries = 70, s.keys = 33;
  const Compiled::Result r = Compiled(key_of("causal", "lse")).run(s);
  for (int64_t t = 0; t < 70 - 33; ++t)
    for (int64_t h = 0; h < 2; ++h) {
      EXPECT_EQ(r.lse[size_t(h * 70 + t)], kMinusInfinity);
      for (int64_t d = 0; d < 32; ++d) EXPECT_EQ(r.out[size_t((t * 2 + h) * 32 + d)], 0);
    }
  EXPECT_TRUE(std::isfinite(r.lse[70 - 33]));
}

/// flashinfer#4051, flash-attention#978: merges of nothing with nothing, and a call without keys.
TEST(AttentionElsewhere, WithoutKeysOutIsZero) {
  for (const char* mask : {"none", "causal", "causal_top_left", "window"}) {
    AttentionShape s;
    s.queries = 5, s.keys = 0, s.batch = 2;
    const Compiled::Result r = Compiled(key_of(mask, "lse")).run(s);
    for (float x : r.out) EXPECT_EQ(x, 0) << mask;
    for (float x : r.lse) EXPECT_EQ(x, kMinusInfinity) << mask;
  }
}

/// A window that leaves whole blocks of keys out before a row's first one.
TEST(AttentionElsewhere, BlocksWithoutKeysOfARowAddNothing) {
  AttentionShape s;
  s.queries = 600, s.keys = 600, s.left = 0, s.right = 0;
  const Compiled::Result r = Compiled(key_of("window", "lse")).run(s);
  const AttentionInputs in(Attention::parse(key_of("window", "lse")), s, 3);
  for (int64_t t = 0; t < 600; ++t)
    for (int64_t d = 0; d < 32; ++d)
      EXPECT_EQ(r.out[size_t(t * 64 + d)], reinterpret_cast<const float*>(in.value.data())[t * 32 + d]);
}

/// flash-attention#1745: what lies in a cache behind the keys that count is in no result.
TEST(AttentionElsewhere, TheCachesPaddingIsNotRead) {
  AttentionShape s;
  s.batch = 3, s.queries = 3, s.keys = 300, s.keys_used = {257, 1, 64};
  const Compiled kernel(key_of("causal", "varlen+lse"));
  const auto poisoned = [&](float with) {
    return kernel.run(s, [&](AttentionInputs& in) {
      for (PageBuffer* buffer : {&in.key, &in.value})
        for (int64_t b = 0; b < 3; ++b)
          for (int64_t i = in.shape.keys_used[size_t(b)] * 32; i < 300 * 32; ++i)
            reinterpret_cast<float*>(buffer->data())[b * 300 * 32 + i] = with;
    });
  };
  const Compiled::Result zeros = poisoned(0), nan = poisoned(NAN), infinite = poisoned(INFINITY);
  EXPECT_EQ(std::memcmp(zeros.out.data(), nan.out.data(), 4 * zeros.out.size()), 0);
  EXPECT_EQ(std::memcmp(zeros.out.data(), infinite.out.data(), 4 * zeros.out.size()), 0);
  EXPECT_EQ(std::memcmp(zeros.lse.data(), nan.lse.data(), 4 * zeros.lse.size()), 0);
  for (float x : zeros.out) EXPECT_TRUE(std::isfinite(x));
}

/// Pages in any order, some of two entries, hold what lies side by side elsewhere.
TEST(AttentionElsewhere, PagesChangeNothing) {
  const std::string key = key_of("causal", "varlen+lse");
  std::string with_pages = key;
  with_pages.insert(key.find(" at_batch"), " page=16");
  AttentionShape s;
  s.batch = 3, s.queries = 5, s.keys = 300, s.keys_used = {300, 33, 16}, s.shared_pages = true,
  s.table_gap = 1;
  const AttentionInputs pages(Attention::parse(with_pages), s, 3);
  const Compiled::Result found = Compiled(with_pages).run(s);
  const Compiled::Result expected = Compiled(key).run(s, [&](AttentionInputs& in) {
    for (auto [to, from] : {std::pair(&in.key, &pages.key), std::pair(&in.value, &pages.value)})
      for (int64_t b = 0; b < 3; ++b)
        for (int64_t j = 0; j < s.keys_used[size_t(b)]; ++j)
          std::memcpy(to->data() + in.key_layout.row(b, j, 0) * 32 * 4,
                      from->data() + pages.key_layout.row(b, j, 0) * 32 * 4, 32 * 4);
  });
  ASSERT_FALSE(std::is_sorted(pages.pages.table.begin(), pages.pages.table.begin() + 19));
  EXPECT_EQ(pages.key_layout.row(0, 3, 0), pages.key_layout.row(1, 3, 0)) << "one is shared";
  for (size_t i = 0; i < expected.out.size(); ++i) EXPECT_NEAR(found.out[i], expected.out[i], 1e-5);
  for (size_t i = 0; i < expected.lse.size(); ++i) EXPECT_NEAR(found.lse[i], expected.lse[i], 1e-5);
}

/// pytorch#194167, flash-attention#1217, #2550: rows of ragged batches that nobody writes.
TEST(AttentionElsewhere, EveryRowOfARaggedBatchIsWritten) {
  AttentionShape s;
  s.batch = 6, s.queries = 200, s.keys = 300;
  s.query_counts = {0, 200, 1, 0, 37, 0}, s.key_counts = {3, 300, 0, 0, 65, 9};
  const Compiled::Result r = Compiled(key_of("causal", "varlen+lse")).run(s);
  for (float x : r.out) EXPECT_FALSE(std::isnan(x));
  for (float x : r.lse) EXPECT_FALSE(std::isnan(x));
}

/// flash-attention#1570: entries of a batch do not change each other's results, by a bit.
TEST(AttentionElsewhere, ResultsDoNotDependOnTheBatch) {
  AttentionShape alone, beside;
  alone.queries = beside.queries = 129, alone.keys = beside.keys = 257, beside.batch = 3;
  const Compiled kernel(key_of("causal", "lse"));
  const Compiled::Result one = kernel.run(alone), three = kernel.run(beside);
  EXPECT_EQ(std::memcmp(one.out.data(), three.out.data(), 4 * one.out.size()), 0);
}

/// flash-attention#2250: a needle at the other end of a long context, and a first token that all look at.
TEST(AttentionElsewhere, LongContextsKeepANeedle) {
  Attention p = Attention::parse(key_of("none", "lse"));
  p.keys = 1 << 17;
  AttentionShape s;
  s.queries = 1, s.keys = 1 << 17;
  const Compiled::Result r = Compiled(p.key()).run(s, [&](AttentionInputs& in) {
    auto *q = reinterpret_cast<float*>(in.q.data()), *k = reinterpret_cast<float*>(in.key.data()),
         *v = reinterpret_cast<float*>(in.value.data());
    for (int64_t d = 0; d < 64; ++d) q[d] = 1;
    for (int64_t i = 0; i < s.keys * 32; ++i) k[i] = 0, v[i] = 0;
    for (int64_t d = 0; d < 32; ++d)
      k[d] = k[(s.keys - 1) * 32 + d] = 2.5f, v[d] = 1, v[(s.keys - 1) * 32 + d] = 3;
  });
  const double top = std::exp(2.5 * 32 / std::sqrt(32.0)), sum = 2 * top + double(s.keys - 2);
  // A lane of few adds up 2^14 weights and more: by AVX2, 1.1e-5 of the sum is lost.
  for (float x : r.out) EXPECT_NEAR(x, 4 * top / sum, 1e-4 * 4 * top / sum);
  for (float x : r.lse) EXPECT_NEAR(x, std::log(sum), 1e-5);
}

std::string with_bias(const std::string& key, const std::string& type) {
  std::string text = key;
  return text.insert(key.find(" at_batch"), " bias=" + type);
}

/// Of bf16 and f32: what -infinity hides, a call without these keys does not see, and rows that see none are
/// empty. A NaN stays in its row.
TEST(Attention, ABiasOfMinusInfinityHidesKeysAndNanStaysInItsRow) {
  AttentionShape s;
  s.queries = 20, s.keys = 70;
  AttentionShape fewer = s;
  fewer.keys = 41;
  const Compiled::Result expected = Compiled(key_of("none", "lse")).run(fewer);
  for (const char* type : {"f32", "bf16"}) {
    const Compiled kernel(with_bias(key_of("none", "lse"), type));
    const Type stored = *kernel.problem().bias;
    const Compiled::Result r = kernel.run(s, [&](AttentionInputs& in) {
      for (int64_t h = 0; h < 2; ++h)
        for (int64_t t = 0; t < 20; ++t)
          for (int64_t j = 0; j < 70; ++j) {
            const double none = j % 2 ? -INFINITY : -0x1.fep127; // the lowest bf16
            const double bias = t == 5 || j >= 41 ? none : h == 1 && t == 7 && j == 3 ? NAN : 0.0;
            encode(stored, bias, in.bias.data(), in.bias_layout.row(0, h, t) * 70 + j);
          }
    });
    for (int64_t t = 0; t < 20; ++t)
      for (int64_t h = 0; h < 2; ++h) {
        const float lse = r.lse[size_t(h * 20 + t)];
        if (t == 5)
          EXPECT_EQ(lse, kMinusInfinity);
        else if (t == 7 && h == 1)
          EXPECT_TRUE(std::isnan(lse));
        else
          EXPECT_NEAR(lse, expected.lse[size_t(h * 20 + t)], 1e-4) << type << t;
        for (int64_t d = 0; d < 32; ++d) {
          const float x = r.out[size_t((t * 2 + h) * 32 + d)];
          if (t == 5)
            EXPECT_EQ(x, 0);
          else if (t == 7 && h == 1)
            EXPECT_TRUE(std::isnan(x));
          else
            EXPECT_NEAR(x, expected.out[size_t((t * 2 + h) * 32 + d)], 1e-4) << type << t;
        }
      }
  }
}

/// Bits do not depend on what lies behind an entry's keys and queries, nor on the bias of keys that the mask
/// hides. The strides tell entries, heads and queries apart: each of them that is 0 changes the result.
TEST(Attention, ABiasIsReadWhereItCountsAlone) {
  AttentionShape s;
  s.batch = 3, s.queries = 6, s.keys = 130, s.query_counts = {6, 1, 4}, s.keys_used = {130, 65, 2};
  const Compiled kernel(with_bias(key_of("causal", "varlen+lse"), "f32"));
  const auto run = [&](float poison) {
    return kernel.run(s, [&](AttentionInputs& in) {
      auto* bias = reinterpret_cast<float*>(in.bias.data());
      for (int64_t b = 0; b < 3; ++b)
        for (int64_t h = 0; h < 2; ++h)
          for (int64_t t = 0; t < 6; ++t)
            for (int64_t j = 0; j < 130; ++j)
              if (t >= s.queries_of(b) || j > t + s.keys_of(b) - s.queries_of(b))
                bias[in.bias_layout.row(b, h, t) * 130 + j] = poison;
    });
  };
  const Compiled::Result zeros = run(0), nan = run(NAN);
  EXPECT_EQ(std::memcmp(zeros.out.data(), nan.out.data(), 4 * zeros.out.size()), 0);
  EXPECT_EQ(std::memcmp(zeros.lse.data(), nan.lse.data(), 4 * zeros.lse.size()), 0);
  for (bool AttentionShape::* one : {&AttentionShape::one_bias_of_entries, &AttentionShape::one_bias_of_heads,
                                     &AttentionShape::one_bias_of_queries}) {
    AttentionShape other = s;
    other.*one = true;
    EXPECT_NE(kernel.run(other).lse, kernel.run(s).lse);
  }
}

/// A score that is no number makes its row one, and no other.
TEST(AttentionElsewhere, NoNumberStaysInItsRow) {
  AttentionShape s;
  s.queries = 20, s.keys = 40;
  const Compiled::Result r = Compiled(key_of("none", "lse")).run(s, [&](AttentionInputs& in) {
    reinterpret_cast<float*>(in.q.data())[7 * 64] = NAN;
  });
  for (int64_t row = 0; row < 40; ++row)
    for (int64_t d = 0; d < 32; ++d) EXPECT_EQ(std::isnan(r.out[size_t(row * 32 + d)]), row == 14);
}

} // namespace
} // namespace deepgen::attention_test
