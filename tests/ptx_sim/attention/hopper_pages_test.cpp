// hopper_attention with keys and values in pages: every size of a page, ends of entries anywhere, pages that
// no key lies in, and faults planted in right kernels.
#include "generator/codegen/compile.h"
#include "generator/space/space.h"
#include "templates/nvidia/hopper_attention/hopper_attention.h"
#include "tests/ptx_sim/attention/hopper_attention_kernel.h"
#include "tests/ptx_sim/attention/paged_cases.h"
#include "tests/ptx_sim/attention/planted.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <regex>

namespace deepgen::hopper_pages_test {
namespace {

const Template& paged_family() { return find_template("hopper_attention"); }

Attention paged_problem(const std::string& mask, const std::string& options, int64_t page, int64_t keys) {
  return Attention::parse(
      "attention heads=4 kv_heads=2 head_dim=64 value_dim=64 q=bf16 kv=bf16 out=bf16 mask=" + mask +
      " queries=300 keys=" + std::to_string(keys) + " options=" + options + " page=" + std::to_string(page) +
      " at_batch=1 at_queries=200 at_keys=" + std::to_string(keys));
}

class EveryPageSize : public testing::TestWithParam<int> {};

/// A page has several blocks of keys, or these have several pages, or parts of them.
TEST_P(EveryPageSize, IsRight) {
  const int64_t page = GetParam(), keys = std::max<int64_t>(410, page + 70);
  const std::tuple<const char*, const char*, int64_t, const char*> all[] = {
      {"none", "varlen+lse", 64,
       "consumers=2 resident=1 keys=64 ahead=0 stages=2 pingpong=0 rescale=0 soft=0 halfway=0 persistent=1"},
      {"causal", "varlen+lse+softcap+sink", 80,
       "consumers=2 resident=1 keys=80 ahead=1 stages=3 pingpong=1 rescale=2 soft=0 halfway=0 persistent=1"},
      {"window", "lse", 128,
       "consumers=1 resident=1 keys=128 ahead=0 stages=2 pingpong=0 rescale=1 soft=0 halfway=0 "
       "persistent=0"}};
  for (const auto& [mask, options, block, config] : all) {
    const Attention p = paged_problem(mask, options, page, keys);
    ptx_sim::expect_right(ptx_sim::attention_kernel(p, config), paged_cases(p, block), uint64_t(page));
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes, EveryPageSize, testing::Values(8, 16, 32, 64, 128, 256, 512, 1024));

/// Rows of keys and of values with several slices, and with a part of one; more consumers than rows at the
/// end.
TEST(HopperPages, AnyDimensionIsRight) {
  const std::tuple<const char*, int64_t, const char*> all[] = {
      {"head_dim=128 value_dim=128 q=f16 kv=f16 out=f32 mask=causal", 64,
       "consumers=3 resident=1 keys=64 ahead=0 stages=2 pingpong=1 rescale=0 soft=0 halfway=1 persistent=1"},
      {"head_dim=192 value_dim=40 q=bf16 kv=bf16 out=bf16 mask=window", 96,
       "consumers=2 resident=1 keys=96 ahead=0 stages=2 pingpong=0 rescale=2 soft=0 halfway=0 persistent=1"},
      {"head_dim=8 value_dim=256 q=f16 kv=f16 out=f16 mask=none", 80,
       "consumers=1 resident=1 keys=80 ahead=0 stages=4 pingpong=0 rescale=0 soft=0 halfway=0 persistent=1"}};
  for (const auto& [problem, block, config] : all) {
    const Attention p = Attention::parse(
        std::string("attention heads=3 kv_heads=1 ") + problem +
        " queries=300 keys=330 options=varlen+lse page=16 at_batch=2 at_queries=150 at_keys=330");
    ptx_sim::expect_right(ptx_sim::attention_kernel(p, config), paged_cases(p, block), 4);
  }
}

/// Without lengths of queries there is nothing to copy row by row.
TEST(HopperPages, AllTilesAreBoxesOfPages) {
  const Attention p = paged_problem("causal", "none", 64, 500);
  const Kernel kernel =
      ptx_sim::attention_kernel(p, "consumers=2 resident=1 keys=128 ahead=0 stages=2 pingpong=1 rescale=0 "
                                   "soft=0 halfway=0 persistent=1");
  EXPECT_EQ(kernel.ptx.find("cp.async.cg"), std::string::npos);
  for (const TensorMap& map : kernel.maps) EXPECT_EQ(map.box_rows, map.operand == "q" ? 128 : 64);
  ptx_sim::expect_right(kernel, paged_cases(p, 128), 8);
}

/// What a function gets that no search was made for, with what runs where a call does not lie as TMA wants.
TEST(HopperPages, TheDefaultOfAPrefillIsRight) {
  const Attention p =
      Attention::parse("attention heads=8 kv_heads=2 head_dim=128 value_dim=128 q=bf16 kv=bf16 out=bf16 "
                       "mask=causal queries=2048 "
                       "keys=8192 options=varlen+lse page=64 at_batch=2 at_queries=1024 at_keys=4096");
  const Choice choice = Space(p, "sm_90a", generic_gpu("sm_90a")).default_choice();
  EXPECT_EQ(choice.template_name, "hopper_attention") << choice.text();
  setenv("DEEPGEN_PTXAS", "none", 1);
  const KernelFile file = compile_candidate(p, "sm_90a", choice, false, true);
  ASSERT_EQ(file.status, "ok") << file.detail;
  ASSERT_NE(file.find("fallback"), nullptr);
  std::vector<AttentionCase> cases = cases_for(p);
  cases.erase(cases.begin()); // as tuned: too much to simulate
  for (const char* role : {"main", "fallback"}) ptx_sim::expect_right(*file.find(role), cases, 6);
}

/// A server that has a window may give pages before it to others: neither the page nor its number is read.
TEST(HopperPages, PagesBeforeTheWindowMayBeGone) {
  const Attention p = paged_problem("window", "varlen+lse", 16, 600);
  const Kernel kernel =
      ptx_sim::attention_kernel(p, "consumers=2 resident=1 keys=128 ahead=0 stages=2 pingpong=0 rescale=0 "
                                   "soft=0 halfway=0 persistent=1");
  AttentionCase c;
  c.name = "a window at the end", c.shape.batch = 2, c.shape.queries = 9, c.shape.keys = 600;
  c.shape.keys_used = {600, 391}, c.shape.left = 20, c.shape.right = 0;
  const ptx_sim::Runner device = ptx_sim::runner(kernel);
  const auto fault = [&](int64_t more) {
    return ptx_sim::check_attention(
               kernel, c, 3,
               [&](const Launch& l, const auto& arguments, ptx_sim::GlobalMemory& memory, uint64_t seed) {
                 ptx_sim::GlobalMemory::Region& table = memory.named("page_table");
                 const int64_t stride = (c.shape.keys + 15) / 16;
                 for (int64_t b = 0; b < 2; ++b)
                   for (int64_t i = 0; i < (c.shape.keys_of(b) - 9 - 20) / 16 + more; ++i) {
                     const int32_t nowhere = AttentionPages::nowhere;
                     std::memcpy(&table.bytes[table.lead + size_t(4 * (b * stride + i))], &nowhere, 4);
                   }
                 device(l, arguments, memory, seed);
               })
        .fault;
  };
  EXPECT_EQ(fault(0), "");
  EXPECT_NE(fault(1), "") << "a page that is read is gone";
}

constexpr const char* kZeros = R"(st\.shared\.v4\.b32\s+\[(%rd\d+)\], \{0, 0, 0, 0\};)";
/// Of pages of 16 tokens: a key, at most the entry's last one, and the place of its page in the table.
constexpr const char* kLookUp = R"(min\.s32\s+(%r\d+), (%r\d+), %r\d+;(\s+shr\.u32\s+%r\d+, \1, 2;))";
constexpr const char* kAnyKey = "mov.b32 $1, $2;$3";

TEST(HopperPages, PlantedFaultsAreFound) {
  const Attention p = paged_problem("causal", "varlen+lse", 16, 410);
  const Kernel right =
      ptx_sim::attention_kernel(p, "consumers=2 resident=1 keys=64 ahead=0 stages=2 pingpong=0 rescale=0 "
                                   "soft=0 halfway=0 persistent=1");
  const std::vector<AttentionCase> cases = paged_cases(p, 64);
  ASSERT_EQ(ptx_sim::first_fault(right, cases), "");
  const ptx_sim::PlantedFault all[] = {
      {R"(cp\.async\.bulk\.tensor[^;]*;)", ""},
      {R"(fence\.proxy\.async\.shared::cta;)", ""},
      {kZeros, ""},
      {kZeros, "st.shared.v4.b32 [$1+128], {0, 0, 0, 0};"}, // from the next row on
      // The page of lane 0 for all, and of the next one.
      {R"(shfl\.sync\.idx\.b32\s+(%r\d+), (%r\d+), %r\d+, 31, -1;)", "mov.b32 $1, $2;"},
      {R"(shfl\.sync\.idx\.b32\s+(%r\d+), (%r\d+), (%r\d+), 31, -1;)",
       "shfl.sync.down.b32 $1, $2, 1, 31, -1;"},
      {kLookUp, kAnyKey}, // ids behind the table
      // Pages behind the end.
      {kLookUp, kAnyKey, R"(min\.s32\s+(%r\d+), %r\d+, 4;)", "mov.b32 $1, 4;"},
      {R"((@%p\d+ )?mbarrier\.arrive\.shared::cta\.b64 _, \[[^;]*;)", ""},
      {R"(mbarrier\.init\.shared::cta\.b64[^;]*;)", ""},
  };
  for (const ptx_sim::PlantedFault& x : all) ptx_sim::expect_found(right, cases, x);
  // The producer waits for places, and for the values that zeros are to follow.
  ptx_sim::expect_found(right, cases, {R"(\{ \.reg \.pred done; again: mbarrier[^}]*\})", ""},
                        right.ptx.find("setmaxnreg.dec"));
}

/// Zeros before the window, whose boxes do not come.
TEST(HopperPages, PlantedFaultsOfAWindowAreFound) {
  const Attention p = paged_problem("window", "lse", 16, 410);
  const Kernel right =
      ptx_sim::attention_kernel(p, "consumers=1 resident=1 keys=128 ahead=0 stages=2 pingpong=0 rescale=0 "
                                   "soft=0 halfway=0 persistent=1");
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

TEST(HopperPages, SmallPagesAreOthers) {
  Attention p = paged_problem("causal", "none", 8, 410);
  EXPECT_EQ(paged_family().why_not(p, "sm_90a"), "");
  for (int64_t page : {1, 2, 4}) {
    p.page_size = page;
    EXPECT_NE(paged_family().why_not(p, "sm_90a").find("PAGED 8 or more"), std::string::npos);
    EXPECT_EQ(find_template("mma_attention").why_not(p, "sm_90a"), "");
  }
}

} // namespace
} // namespace deepgen::hopper_pages_test
