// hopper_attention where calls have few rows: heads that are packed into the rows of a tile, and blocks that
// share out an entry's keys. What mma_attention has of it, too, attention_test.cpp tests with both.
#include "generator/codegen/compile.h"
#include "generator/space/space.h"
#include "templates/nvidia/hopper_attention/hopper_attention.h"
#include "tests/ptx_sim/attention/hopper_attention_kernel.h"
#include "tests/ptx_sim/attention/planted.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace deepgen::hopper_few_rows_test {
namespace {

constexpr const char* kArch = "sm_90a";

Attention few_rows(const std::string& types, const std::string& mask, const std::string& options,
                   int64_t tuned = 8, int64_t group = 2) {
  return Attention::parse("attention heads=" + std::to_string(2 * group) +
                          " kv_heads=2 head_dim=64 value_dim=64 " + types + " mask=" + mask +
                          " queries=100 keys=600 options=" + options +
                          " at_batch=2 at_queries=" + std::to_string(tuned) + " at_keys=600");
}

constexpr const char* kPlain =
    "consumers=1 resident=1 keys=64 ahead=0 stages=2 pingpong=0 rescale=0 soft=0 halfway=0 persistent=1";

/// Few queries, more splits than blocks of keys, consumers that see other keys, calls that are not split.
struct FewRowsCase {
  const char *types, *mask, *options, *config;
  int64_t tuned = 8; ///< queries: half of the consumers must not have room for all
  int64_t group = 2;
};
void PrintTo(const FewRowsCase& x, std::ostream* out) { *out << x.mask << " " << x.options; }

class EveryCallOfFewRows : public testing::TestWithParam<FewRowsCase> {};

TEST_P(EveryCallOfFewRows, IsRight) {
  const FewRowsCase& x = GetParam();
  const Attention p = few_rows(x.types, x.mask, x.options, x.tuned, x.group);
  ptx_sim::expect_right(ptx_sim::attention_kernel(p, x.config), cases_for(p), 6);
}

constexpr const char* kBf16 = "q=bf16 kv=bf16 out=bf16";

INSTANTIATE_TEST_SUITE_P(
    Configs, EveryCallOfFewRows,
    testing::Values(
        FewRowsCase{kBf16, "none", "varlen+lse+softcap+sink splits=2",
                    "consumers=1 resident=1 keys=64 ahead=0 stages=2 pingpong=0 rescale=0 soft=0 halfway=0 "
                    "persistent=1 splits=2"},
        FewRowsCase{kBf16, "causal", "varlen+lse+softcap+sink page=16 splits=4",
                    "consumers=2 resident=1 keys=80 ahead=1 stages=2 pingpong=1 rescale=2 soft=0 halfway=0 "
                    "persistent=1 splits=4",
                    70},
        FewRowsCase{kBf16, "window", "varlen+lse+sink bias=f16 page=64 splits=64",
                    "consumers=1 resident=1 keys=64 ahead=0 stages=3 pingpong=0 rescale=1 soft=0 halfway=1 "
                    "persistent=0 splits=64"},
        FewRowsCase{"q=f16 kv=f16 out=f32", "window", "lse splits=4",
                    "consumers=3 resident=1 keys=64 ahead=0 stages=2 pingpong=0 rescale=0 soft=0 halfway=0 "
                    "persistent=0 splits=4",
                    100},
        FewRowsCase{"q=e4m3 kv=e4m3 out=bf16", "causal_top_left", "varlen+lse+sink splits=8",
                    "consumers=2 resident=1 keys=64 ahead=0 stages=2 pingpong=0 rescale=1 soft=0 halfway=0 "
                    "persistent=1 splits=8",
                    70},
        FewRowsCase{kBf16, "causal", "varlen+lse+softcap+sink",
                    "consumers=1 resident=1 keys=64 ahead=0 stages=2 pingpong=0 rescale=2 soft=0 halfway=0 "
                    "persistent=1 pack=1 splits=1"},
        FewRowsCase{kBf16, "window", "varlen+lse+sink bias=f16 page=16 splits=4",
                    "consumers=1 resident=1 keys=80 ahead=1 stages=2 pingpong=0 rescale=0 soft=0 halfway=0 "
                    "persistent=0 pack=1 splits=4",
                    8, 7},
        FewRowsCase{"q=f16 kv=f16 out=f32", "none", "lse splits=2",
                    "consumers=2 resident=1 keys=64 ahead=1 stages=2 pingpong=1 rescale=1 soft=0 halfway=0 "
                    "persistent=1 pack=1 splits=2",
                    8, 16},
        FewRowsCase{"q=e4m3 kv=e4m3 out=bf16", "causal_top_left", "varlen+lse splits=4",
                    "consumers=1 resident=1 keys=64 ahead=0 stages=2 pingpong=0 rescale=1 soft=0 halfway=0 "
                    "persistent=1 pack=1 splits=4",
                    8, 8}));

/// Rows that see the keys of some splits alone, or none.
std::vector<AttentionCase> split_cases(const Attention& p) {
  std::vector<AttentionCase> cases = cases_for(p);
  AttentionCase& c = cases.emplace_back();
  c.name = "entries of any length", c.shape.batch = 12, c.shape.queries = 40, c.shape.keys = 600;
  if (p.varlen) c.shape.keys_used = {600, 129, 64, 0, 1, 200, 63, 65, 599, 128, 192, 300};
  return cases;
}

TEST(HopperFewRows, PlantedFaultsOfSplitsAreFound) {
  const Attention p = few_rows(kBf16, "causal", "varlen+lse splits=4");
  const Kernel right = ptx_sim::attention_kernel(p, std::string(kPlain) + " splits=4");
  const std::vector<AttentionCase> cases = split_cases(p);
  ASSERT_EQ(ptx_sim::first_fault(right, cases), "");
  const ptx_sim::PlantedFault all[] = {
      {R"(wgmma\.wait_group\.sync\.aligned 0;)", ""},
      {R"(wgmma\.wait_group\.sync\.aligned 1;)", ""},
      {R"(fence\.proxy\.async\.shared::cta;)", ""},
      {R"((@%p\d+ )?mbarrier\.arrive\.shared::cta\.b64 _, \[[^;]*;)", ""},
  };
  for (const ptx_sim::PlantedFault& x : all) ptx_sim::expect_found(right, cases, x);
  // Ranges of keys, in the producer and the consumers alike: the last ones are nobody's; those behind a part
  // are its own, too.
  constexpr const char* kRounded = R"(selp\.b32\s+(%r\d+), 3, 0, %p\d+;)";
  ptx_sim::expect_found(right, cases, {kRounded, "mov.b32 $1, 0;", kRounded, "mov.b32 $1, 0;"});
  constexpr const char* kEnd = R"(min\.s32\s+(%r\d+), (%r\d+), %r\d+;(\s+shr\.u32\s+%r\d+, %r\d+, 6;))";
  ptx_sim::expect_found(right, cases, {kEnd, "mov.b32 $1, $2;$3", kEnd, "mov.b32 $1, $2;$3"});
}

/// Rows of the tile that are of another token or head.
TEST(HopperFewRows, RowsOfAnotherTokenOrHeadAreFound) {
  for (const char* splits : {"1", "2"}) {
    const Attention p = few_rows(kBf16, "causal", std::string("lse splits=") + splits, 8, 4);
    const Kernel kernel = ptx_sim::attention_kernel(p, std::string(kPlain) + " pack=1 splits=" + splits);
    const AttentionCase c = cases_for(p).front();
    ptx_sim::expect_right(kernel, {c}, 3);
    EXPECT_EQ(ptx_sim::unseen_strides(kernel, c, 3,
                                      {"q_token", "q_head", "q_batch", "out_token", "out_head", "out_batch",
                                       "lse_token", "lse_head"}),
              std::vector<std::string>());
  }
}

TEST(HopperFewRows, PlantedFaultsOfPackedRowsAreFound) {
  const Attention p = few_rows(kBf16, "causal", "varlen+lse", 8, 4);
  const Kernel right = ptx_sim::attention_kernel(p, std::string(kPlain) + " pack=1 splits=1");
  const std::vector<AttentionCase> cases = split_cases(p);
  ASSERT_EQ(ptx_sim::first_fault(right, cases), "");
  // Cut off keys are copied ahead of Q, whose wait and fence are theirs, too.
  const size_t of_q = right.ptx.find("cp.async.cg", right.ptx.find("cp.async.cg") + 1);
  const ptx_sim::PlantedFault all[] = {
      {R"(cp\.async\.cg\.shared\.global[^;]*;)", ""},
      {R"(cp\.async\.wait_group\s+0;)", ""},
      {R"(fence\.proxy\.async\.shared::cta;)", ""},
      {R"((@%p\d+ )?mbarrier\.arrive\.shared::cta\.b64 _, \[[^;]*;)", ""},
  };
  for (const ptx_sim::PlantedFault& x : all) ptx_sim::expect_found(right, cases, x, of_q);
}

/// Configs that were written before there were splits mean one part, and their kernels are what they were.
TEST(HopperFewRows, ConfigsWithoutSplitsAreThoseOfOne) {
  const Attention p = few_rows(kBf16, "causal", "varlen+lse");
  const Kernel old = ptx_sim::attention_kernel(p, kPlain),
               now = ptx_sim::attention_kernel(p, std::string(kPlain) + " pack=0 splits=1");
  EXPECT_EQ(old.ptx, now.ptx);
  EXPECT_EQ(old.args, now.args);
  EXPECT_EQ(old.launches, now.launches);
  EXPECT_EQ(old.workspace, 0);
  const Kernel split = ptx_sim::attention_kernel(p, std::string(kPlain) + " splits=4");
  EXPECT_NE(split.ptx, now.ptx);
  EXPECT_EQ(split.launches.size(), 2u);
}

TEST(HopperFewRows, SplitsWithoutUseAreRefused) {
  const Template& hopper = find_template("hopper_attention");
  const Attention p = few_rows(kBf16, "causal", "varlen+lse");
  const auto illegal = [&](const Attention& problem, const char* splits) {
    return hopper.why_illegal(problem, generic_gpu(kArch), Config::parse(std::string(kPlain) + splits));
  };
  EXPECT_EQ(illegal(p, " splits=8"), "");
  EXPECT_NE(illegal(p, " splits=16").find("without any of the 600 keys"), std::string::npos);
  Attention many = p;
  many.at_batch = 400, many.at_keys = many.keys = 6000;
  EXPECT_EQ(illegal(many, " splits=1"), "");
  EXPECT_NE(illegal(many, " splits=4").find("multiprocessors 4 blocks"), std::string::npos);
}

} // namespace
} // namespace deepgen::hopper_few_rows_test
