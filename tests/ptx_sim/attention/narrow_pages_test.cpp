// Attention of e4m3 with keys and values in pages on Hopper: boxes of pages come to where other warps
// transpose values, and what is behind an entry's last key is zero before they do. Memory of keys that do not
// count, and pages that no entry has, are NaN. More of them: PTX_SIM_ATTENTION=1000 PTX_SIM_SEED=7.
#include "generator/codegen/compile.h"
#include "generator/space/sample.h"
#include "generator/space/space.h"
#include "templates/core/operator_template.h"
#include "tests/ptx_sim/attention/hopper_attention_kernel.h"
#include "tests/ptx_sim/attention/paged_cases.h"
#include "tests/ptx_sim/attention/planted.h"
#include "tests/ptx_sim/from_environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

namespace deepgen::narrow_pages_test {
namespace {

constexpr int kShares = 4;
constexpr const char* kArch = "sm_90a";

const Template& hopper() { return find_template("hopper_attention"); }

/// `rest`: behind "options=".
Attention problem(const std::string& mask, const std::string& rest, int64_t keys = 410, int64_t queries = 200,
                  int64_t group = 2) {
  return Attention::parse("attention heads=" + std::to_string(group) +
                          " kv_heads=1 head_dim=64 value_dim=64 q=e4m3 kv=e4m3 out=bf16 mask=" + mask +
                          " queries=300 keys=" + std::to_string(keys) + " options=" + rest +
                          " at_batch=1 at_queries=" + std::to_string(queries) +
                          " at_keys=" + std::to_string(keys));
}

class RandomNarrowPages : public testing::TestWithParam<int> {};

TEST_P(RandomNarrowPages, IsRightOnTheSimulatedDevice) {
  const uint64_t first = from_environment("PTX_SIM_SEED", 3) * 100000 + 50000;
  const uint64_t count = from_environment("PTX_SIM_ATTENTION", 24);
  constexpr int64_t dimensions[] = {64, 128, 64, 128, 16, 48, 80, 96, 192, 256},
                    pages[] = {8, 16, 32, 64, 128};
  for (uint64_t i = uint64_t(GetParam()); i < count; i += kShares) {
    std::mt19937_64 random(first + i);
    const auto below = [&](int64_t n) { return int64_t(random() % uint64_t(n)); };
    Attention p = ptx_sim::draw_attention(first + i, below(2) ? 200 : 40); // of these some are packed
    p.q = p.kv = Type::e4m3, p.page_size = pages[below(5)];
    p.head_dim = dimensions[below(10)], p.value_dim = dimensions[below(8)];
    ASSERT_EQ(hopper().why_not(p, kArch), "") << p.key();
    const auto config = draw_config(hopper(), p, generic_gpu(kArch), random);
    ASSERT_TRUE(config) << p.key();
    const Kernel kernel = ptx_sim::attention_kernel(p, config->text());
    const std::vector<AttentionCase> cases = paged_cases(p, kernel.maps.at(1).box_rows);
    for (size_t at : {size_t(first + i), size_t(3 * (first + i) + 1)})
      ptx_sim::expect_right(kernel, {cases[at % cases.size()], cases.back()}, first + i);
  }
}
INSTANTIATE_TEST_SUITE_P(Share, RandomNarrowPages, testing::Range(0, kShares));

class EveryNarrowPage : public testing::TestWithParam<int> {};

/// A page has several blocks of keys, or these have several pages, or parts of them.
TEST_P(EveryNarrowPage, IsRight) {
  const int64_t page = GetParam(), keys = std::max<int64_t>(410, page + 70);
  const std::string in_pages = " page=" + std::to_string(page);
  const std::tuple<const char*, const char*, int64_t, const char*> all[] = {
      {"none", "varlen+lse", 64,
       "consumers=2 resident=1 keys=64 ahead=0 stages=2 pingpong=0 rescale=0 soft=0 halfway=0 persistent=1 "
       "promote=0"},
      {"causal", "varlen+lse+softcap+sink", 96,
       "consumers=2 resident=1 keys=96 ahead=1 stages=3 pingpong=1 rescale=1 soft=0 halfway=0 persistent=1 "
       "promote=1"},
      {"window", "lse", 160,
       "consumers=1 resident=1 keys=160 ahead=0 stages=2 pingpong=0 rescale=2 soft=0 halfway=0 persistent=0 "
       "promote=0"}};
  for (const auto& [mask, options, block, config] : all) {
    const Attention p = problem(mask, options + in_pages, keys);
    ptx_sim::expect_right(ptx_sim::attention_kernel(p, config), paged_cases(p, block), uint64_t(page));
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes, EveryNarrowPage, testing::Values(8, 16, 32, 64, 128, 256));

/// Parts of an entry's keys, of which the last one alone has an end; heads in the rows of a tile.
TEST(NarrowPages, FewRowsAreRight) {
  const std::tuple<const char*, const char*, int64_t, const char*> all[] = {
      {"causal", "varlen+lse page=16 splits=4", 2,
       "consumers=1 resident=1 keys=64 ahead=0 stages=2 pingpong=0 rescale=0 soft=0 halfway=0 persistent=1 "
       "promote=0 splits=4"},
      {"none", "varlen+lse+sink page=64", 8,
       "consumers=1 resident=1 keys=128 ahead=0 stages=2 pingpong=0 rescale=1 soft=0 halfway=0 persistent=1 "
       "promote=1 pack=1"},
      {"window", "lse page=8 splits=8", 7,
       "consumers=1 resident=1 keys=96 ahead=1 stages=2 pingpong=0 rescale=2 soft=0 halfway=0 persistent=0 "
       "promote=0 pack=1 splits=8"},
      {"causal_top_left", "varlen+lse bias=f16 page=32 splits=2", 4,
       "consumers=1 resident=2 keys=64 ahead=0 stages=3 pingpong=0 rescale=2 soft=0 halfway=0 persistent=1 "
       "promote=0 pack=1 splits=2"}};
  for (const auto& [mask, rest, group, config] : all) {
    const Attention p = problem(mask, rest, 410, 8, group);
    ptx_sim::expect_right(ptx_sim::attention_kernel(p, config), paged_cases(p, 64), 6);
  }
}

/// Rows of keys and of values with two slices, and with a part of one.
TEST(NarrowPages, AnyDimensionIsRight) {
  const std::pair<const char*, const char*> all[] = {
      {"head_dim=192 value_dim=256",
       "consumers=2 resident=1 keys=64 ahead=0 stages=2 pingpong=1 rescale=2 soft=0 halfway=0 persistent=1 "
       "promote=0"},
      {"head_dim=256 value_dim=48",
       "consumers=1 resident=1 keys=96 ahead=0 stages=2 pingpong=0 rescale=1 soft=0 halfway=0 persistent=1 "
       "promote=1"}};
  for (const auto& [dimensions, config] : all) {
    const Attention p = Attention::parse(std::string("attention heads=3 kv_heads=1 ") + dimensions +
                                         " q=e4m3 kv=e4m3 out=f32 mask=causal queries=300 keys=330 "
                                         "options=varlen+lse page=16 at_batch=2 at_queries=150 at_keys=330");
    ptx_sim::expect_right(ptx_sim::attention_kernel(p, config), paged_cases(p, 64), 4);
  }
}

/// A server that has a window may give pages before it to others: what they hold by then may be NaN.
TEST(NarrowPages, PagesBeforeTheWindowMayBeGone) {
  const Attention p = problem("window", "varlen+lse page=16", 600);
  const Kernel kernel =
      ptx_sim::attention_kernel(p, "consumers=2 resident=1 keys=128 ahead=0 stages=2 pingpong=0 rescale=2 "
                                   "soft=0 halfway=0 persistent=1 promote=0");
  AttentionCase c;
  c.name = "a window at the end", c.shape.batch = 2, c.shape.queries = 9, c.shape.keys = 600;
  c.shape.keys_used = {600, 391}, c.shape.left = 20, c.shape.right = 0;
  const ptx_sim::Runner device = ptx_sim::runner(kernel);
  const auto fault = [&](int64_t more) {
    const auto run = [&](const Launch& l, const auto& arguments, ptx_sim::GlobalMemory& memory,
                         uint64_t seed) {
      ptx_sim::GlobalMemory::Region& table = memory.named("page_table");
      const int64_t stride = (c.shape.keys + 15) / 16;
      for (int64_t b = 0; b < 2; ++b)
        for (int64_t i = 0; i < (c.shape.keys_of(b) - 9 - 20) / 16 + more; ++i) {
          const int32_t nowhere = AttentionPages::nowhere;
          std::memcpy(&table.bytes[table.lead + size_t(4 * (b * stride + i))], &nowhere, 4);
        }
      device(l, arguments, memory, seed);
    };
    return ptx_sim::check_attention(kernel, c, 3, run).fault;
  };
  EXPECT_EQ(fault(0), "");
  EXPECT_NE(fault(1), "") << "a page that is read is gone";
}

constexpr const char* kZeros = R"(st\.shared\.v4\.b32\s+\[(%rd\d+)\], \{0, 0, 0, 0\};)";
/// Of pages of 16 tokens: a key, at most the entry's last one, and the place of its page in the table.
constexpr const char* kLookUp = R"(min\.s32\s+(%r\d+), (%r\d+), %r\d+;(\s+shr\.u32\s+%r\d+, \1, 2;))";
constexpr const char* kAnyKey = "mov.b32 $1, $2;$3";

TEST(NarrowPages, PlantedFaultsAreFound) {
  const Attention p = problem("causal", "varlen+lse page=16");
  const Kernel right =
      ptx_sim::attention_kernel(p, "consumers=2 resident=1 keys=64 ahead=0 stages=2 pingpong=0 rescale=0 "
                                   "soft=0 halfway=0 persistent=1 promote=0");
  const std::vector<AttentionCase> cases = paged_cases(p, 64);
  ASSERT_EQ(ptx_sim::first_fault(right, cases), "");
  const ptx_sim::PlantedFault all[] = {
      {R"(cp\.async\.bulk\.tensor[^;]*;)", ""},
      {kZeros, ""},
      {kZeros, "st.shared.v4.b32 [$1+128], {0, 0, 0, 0};"}, // from the next row on
      // The page of lane 0 for all, and of the next one.
      {R"(shfl\.sync\.idx\.b32\s+(%r\d+), (%r\d+), %r\d+, 31, -1;)", "mov.b32 $1, $2;"},
      {R"(shfl\.sync\.idx\.b32\s+(%r\d+), (%r\d+), (%r\d+), 31, -1;)",
       "shfl.sync.down.b32 $1, $2, 1, 31, -1;"},
      {kLookUp, kAnyKey},                                                       // ids behind the table
      {kLookUp, kAnyKey, R"(min\.s32\s+(%r\d+), %r\d+, 4;)", "mov.b32 $1, 4;"}, // pages behind the end
      {R"((@%p\d+ )?mbarrier\.arrive\.shared::cta\.b64 _, \[[^;]*;)", ""},      // nobody is told
      {R"(mbarrier\.init\.shared::cta\.b64[^;]*;)", ""},                        //
      {R"(mbarrier\.init\.shared::cta\.b64 \[([^\]]*)\], 32;)", "mbarrier.init.shared::cta.b64 [$1], 1;"},
      {R"(stmatrix\.sync[^;]*;)", ""}, // nothing is transposed
  };
  for (const ptx_sim::PlantedFault& x : all) ptx_sim::expect_found(right, cases, x);
  // The producer waits for places, and for the values that zeros are to follow; who transposes waits for
  // these.
  ptx_sim::expect_found(right, cases, {R"(\{ \.reg \.pred done; again: mbarrier[^}]*\})", ""},
                        right.ptx.find("setmaxnreg.dec"));
}

/// Zeros before the window, whose boxes do not come.
TEST(NarrowPages, PlantedFaultsOfAWindowAreFound) {
  const Attention p = problem("window", "lse page=16");
  const Kernel right =
      ptx_sim::attention_kernel(p, "consumers=1 resident=1 keys=128 ahead=0 stages=2 pingpong=0 rescale=0 "
                                   "soft=0 halfway=0 persistent=1 promote=0");
  std::vector<AttentionCase> cases = paged_cases(p, 128);
  for (int64_t i = 0; i < 3; ++i) {
    AttentionCase& c = cases.emplace_back();
    c.name = "a window of a few pages", c.shape.queries = 40, c.shape.keys = 330 + i;
    c.shape.left = 20, c.shape.right = 0, c.shape.batch = 3;
  }
  ASSERT_EQ(ptx_sim::first_fault(right, cases), "");
  ptx_sim::expect_found(right, cases, {kZeros, ""});
  ptx_sim::expect_found(right, cases, {kLookUp, kAnyKey});
}

} // namespace
} // namespace deepgen::narrow_pages_test
