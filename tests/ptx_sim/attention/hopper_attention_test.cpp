// Random problems and configs of hopper_attention on the simulated device, in the calls that verification
// makes, and faults planted in right kernels. More of them: PTX_SIM_ATTENTION=1000 PTX_SIM_SEED=7.
#include "generator/codegen/compile.h"
#include "generator/space/sample.h"
#include "templates/nvidia/hopper_attention/hopper_attention.h"
#include "tests/ptx_sim/check/attention_check.h"
#include "tests/ptx_sim/from_environment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <regex>

namespace deepgen::hopper_attention_test {
namespace {

constexpr int kShares = 4;
constexpr const char* kArch = "sm_90a";

const Template& hopper() { return find_template("hopper_attention"); }

Kernel compiled(const Attention& p, const Config& config) {
  setenv("DEEPGEN_PTXAS", "none", 1); // the PTX is all that is wanted
  const KernelFile file = compile_candidate(p, kArch, {"hopper_attention", config}, false, false);
  EXPECT_EQ(file.status, "ok") << file.detail << ": " << p.key() << " | " << config.text();
  return file.kernels.at(0);
}

void check(const Kernel& kernel, const AttentionCase& c, uint64_t seed) {
  EXPECT_EQ(ptx_sim::check_attention(kernel, c, seed).fault, "")
      << "case '" << c.name << "', seed " << seed << ": " << kernel.problem.key() << " | "
      << kernel.choice.text();
}

/// Any problem that the template serves.
Attention draw(uint64_t seed, int64_t largest) {
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t n) { return int64_t(random() % uint64_t(n)); };
  constexpr int64_t dimensions[] = {64, 128, 64, 128, 96, 192, 256, 8, 40, 80}, groups[] = {1, 2, 4, 7, 8};
  Attention p = ptx_sim::draw_attention(seed, largest);
  if (p.paged()) p.page_size = int64_t(8) << seed % 8;
  p.head_dim = dimensions[below(10)], p.value_dim = below(3) ? p.head_dim : dimensions[below(10)];
  p.kv_heads = 1 + below(2), p.heads = p.kv_heads * groups[below(5)];
  return p;
}

class RandomHopperAttention : public testing::TestWithParam<int> {};

TEST_P(RandomHopperAttention, IsRightOnTheSimulatedDevice) {
  const uint64_t first = from_environment("PTX_SIM_SEED", 3) * 100000;
  const uint64_t count = from_environment("PTX_SIM_ATTENTION", 24);
  for (uint64_t i = uint64_t(GetParam()); i < count; i += kShares) {
    const Attention p = draw(first + i / kShares + 1000 * uint64_t(GetParam()), 200);
    ASSERT_EQ(hopper().why_not(p, kArch), "") << p.key();
    std::mt19937_64 random(first + i);
    const auto config = draw_config(hopper(), p, generic_gpu(kArch), random);
    ASSERT_TRUE(config) << p.key();
    const Kernel kernel = compiled(p, *config);
    const std::vector<AttentionCase> cases = cases_for(p);
    for (size_t at : {size_t(first + i), size_t(3 * (first + i) + 1)})
      check(kernel, cases[at % cases.size()], first + i);
  }
}
INSTANTIATE_TEST_SUITE_P(Share, RandomHopperAttention, testing::Range(0, kShares));

/// What is put in the place of a piece of PTX.
struct Planted {
  const char *pattern, *by;
};

constexpr const char* kPlain =
    "consumers=2 resident=1 keys=64 ahead=0 stages=2 pingpong=0 rescale=0 soft=0 halfway=0 persistent=1";

/// Several blocks of rows and of keys, masked and not, in all calls.
class EveryHopperCall : public testing::TestWithParam<const char*> {};

TEST_P(EveryHopperCall, IsRight) {
  for (const auto& [mask, bias] :
       {std::pair("none", ""), std::pair("causal", ""), std::pair("window", " bias=f32")}) {
    const Attention p = Attention::parse(
        std::string("attention heads=4 kv_heads=2 head_dim=64 value_dim=64 q=bf16 kv=bf16 out=bf16 mask=") +
        mask + " queries=300 keys=600 options=varlen+lse+softcap+sink" + bias +
        " at_batch=1 at_queries=200 at_keys=410");
    const Config config = Config::parse(GetParam());
    ASSERT_EQ(hopper().why_illegal(p, generic_gpu(kArch), config), "") << p.key();
    const Kernel kernel = compiled(p, config);
    for (const AttentionCase& c : cases_for(p)) check(kernel, c, 5);
  }
}
INSTANTIATE_TEST_SUITE_P(
    Configs, EveryHopperCall,
    testing::Values(
        "consumers=1 resident=1 keys=64 ahead=0 stages=2 pingpong=0 rescale=0 soft=0 halfway=0 persistent=0",
        "consumers=2 resident=1 keys=80 ahead=0 stages=2 pingpong=1 rescale=1 soft=0 halfway=0 persistent=1",
        "consumers=3 resident=1 keys=64 ahead=0 stages=3 pingpong=0 rescale=0 soft=2 halfway=1 persistent=1",
        "consumers=3 resident=1 keys=96 ahead=1 stages=2 pingpong=1 rescale=2 soft=3 halfway=0 persistent=1",
        "consumers=1 resident=2 keys=112 ahead=1 stages=2 pingpong=0 rescale=2 soft=0 halfway=0 persistent=1",
        "consumers=2 resident=1 keys=128 ahead=1 stages=2 pingpong=1 rescale=1 soft=1 halfway=0 "
        "persistent=1"));

/// Scores that hardly differ, that rise from block to block of keys, and that leave one weight; rows without
/// keys.
std::vector<AttentionCase> cases_of_scores() {
  std::vector<AttentionCase> all;
  for (double magnitude : {1e-3, 8.0, 100.0, 2000.0, 3e4}) {
    AttentionCase& c = all.emplace_back();
    c.name = "scores of a magnitude", c.shape.queries = 150, c.shape.keys = 411;
    c.shape.magnitude = magnitude;
  }
  AttentionCase& none = all.emplace_back(all[1]);
  none.name = "rows without keys", none.shape.keys = 37;
  return all;
}

class ScoresOfAnyMagnitude : public testing::TestWithParam<const char*> {};

TEST_P(ScoresOfAnyMagnitude, AreRight) {
  for (const char* types : {"q=f16 kv=f16 out=f32", "q=bf16 kv=bf16 out=f32"})
    for (const char* options : {"options=lse", "options=none"}) {
      const Attention p = Attention::parse(
          std::string("attention heads=2 kv_heads=1 head_dim=64 value_dim=64 ") + types +
          " mask=causal queries=300 keys=600 " + options + " at_batch=1 at_queries=200 at_keys=410");
      const Config config = Config::parse(GetParam());
      ASSERT_EQ(hopper().why_illegal(p, generic_gpu(kArch), config), "") << p.key();
      const Kernel kernel = compiled(p, config);
      for (const AttentionCase& c : cases_of_scores()) check(kernel, c, 11);
    }
}
INSTANTIATE_TEST_SUITE_P(
    Configs, ScoresOfAnyMagnitude,
    testing::Values(
        "consumers=2 resident=1 keys=64 ahead=1 stages=2 pingpong=1 rescale=2 soft=0 halfway=0 persistent=1",
        "consumers=2 resident=1 keys=96 ahead=0 stages=2 pingpong=0 rescale=0 soft=3 halfway=0 persistent=1",
        "consumers=3 resident=1 keys=80 ahead=0 stages=2 pingpong=1 rescale=2 soft=8 halfway=1 "
        "persistent=1"));

/// A maximum that never rises, one that rises without its sums, and powers without their exponent.
TEST(HopperAttention, PlantedFaultsOfTheSoftmaxAreFound) {
  const Attention p = Attention::parse(
      "attention heads=2 kv_heads=1 head_dim=64 value_dim=64 q=f16 kv=f16 out=f16 mask=causal "
      "queries=300 keys=600 options=lse at_batch=1 at_queries=200 at_keys=410");
  const Kernel right = compiled(p, Config::parse("consumers=2 resident=1 keys=64 ahead=0 stages=2 pingpong=0 "
                                                 "rescale=2 soft=2 halfway=0 persistent=1"));
  const auto fault = [&](const Kernel& k) {
    for (const AttentionCase& c : cases_of_scores())
      if (const std::string found = ptx_sim::check_attention(k, c, 2).fault; !found.empty()) return found;
    return std::string();
  };
  ASSERT_EQ(fault(right), "");
  const Planted all[] = {
      {"0f41000000", "0f7F000000"}, // the rise of 8
      {"vote\\.sync\\.any", "vote.sync.all"},
      {"shl\\.b32 (\\s*%r\\d+, %r\\d+), 23;", "shl.b32 $1, 22;"},
      {"max\\.NaN\\.f32", "min.f32"},
  };
  for (const Planted& x : all) {
    Kernel wrong = right;
    wrong.ptx = std::regex_replace(right.ptx, std::regex(x.pattern), x.by);
    EXPECT_NE(wrong.ptx, right.ptx) << x.pattern;
    EXPECT_NE(fault(wrong), "") << "not found: " << x.pattern;
  }
}

/// No more tables than the problem's: boxes end with the operands.
TEST(HopperAttention, WithoutLengthsAllTilesAreBoxes) {
  for (const char* mask : {"none", "causal_top_left"}) {
    const Attention p = Attention::parse(
        std::string("attention heads=7 kv_heads=1 head_dim=128 value_dim=128 q=f16 kv=f16 out=f16 mask=") +
        mask + " queries=300 keys=600 options=none at_batch=2 at_queries=193 at_keys=257");
    const Kernel kernel = compiled(p, Config::parse("consumers=2 resident=1 keys=128 ahead=0 stages=2 "
                                                    "pingpong=1 rescale=0 soft=0 halfway=0 persistent=1"));
    EXPECT_EQ(kernel.ptx.find("cp.async.cg"), std::string::npos);
    for (const AttentionCase& c : cases_for(p)) check(kernel, c, 9);
  }
}

/// A kernel with tables, of which some cases together show every fault.
TEST(HopperAttention, PlantedFaultsAreFound) {
  const Attention p = Attention::parse(
      "attention heads=2 kv_heads=1 head_dim=64 value_dim=64 q=bf16 kv=bf16 out=bf16 mask=causal "
      "queries=300 keys=600 options=varlen+lse at_batch=1 at_queries=200 at_keys=410");
  const Kernel right = compiled(p, Config::parse(kPlain));
  std::vector<AttentionCase> cases = cases_for(p);
  AttentionCase& masked = cases.emplace_back(); // the first consumer's last block of keys is masked, too
  masked.name = "all blocks masked", masked.shape.batch = 2, masked.shape.queries = 150,
  masked.shape.keys = 170;
  const auto fault = [&](const Kernel& k) {
    for (const AttentionCase& c : cases)
      if (const std::string found = ptx_sim::check_attention(k, c, 2).fault; !found.empty()) return found;
    return std::string();
  };
  ASSERT_EQ(fault(right), "");
  // In a step, the fence of one product orders the registers of both.
  Kernel without = right;
  without.ptx = std::regex_replace(right.ptx, std::regex(R"(wgmma\.fence\.sync\.aligned;)"), "");
  EXPECT_NE(fault(without).find("without a wgmma.fence"), std::string::npos);
  const Planted all[] = {
      {R"(wgmma\.wait_group\.sync\.aligned 0;)", ""},
      {R"(wgmma\.wait_group\.sync\.aligned 1;)", ""},
      {R"(wgmma\.commit_group\.sync\.aligned;)", ""},
      {R"((@%p\d+ )?mbarrier\.arrive\.shared::cta\.b64 _, \[[^;]*;)", ""},
      {R"(fence\.proxy\.async\.shared::cta;)", ""},
      {R"(cp\.async\.wait_group\s+0;)", ""},
      {R"(bar\.sync\s+0;)", ""},
      {R"(cp\.async\.bulk\.tensor[^;]*;)", ""},
      {R"(cp\.async\.cg\.shared\.global[^;]*;)", ""},
  };
  for (const Planted& x : all) {
    const std::regex pattern(x.pattern);
    int planted = 0;
    for (std::sregex_iterator i(right.ptx.begin(), right.ptx.end(), pattern), end; i != end; ++i, ++planted) {
      Kernel wrong = right;
      wrong.ptx.replace(size_t(i->position()), size_t(i->length()), x.by);
      EXPECT_NE(fault(wrong), "") << "not found: " << i->str() << " removed at byte " << i->position();
    }
    EXPECT_GE(planted, 1) << x.pattern;
  }
}

TEST(HopperAttention, ABiasOfAnotherRowIsFound) {
  const Attention p = Attention::parse(
      "attention heads=4 kv_heads=2 head_dim=64 value_dim=64 q=bf16 kv=bf16 out=bf16 mask=none "
      "queries=300 keys=600 options=lse bias=bf16 at_batch=2 at_queries=150 at_keys=150");
  const Kernel kernel = compiled(p, Config::parse(kPlain));
  AttentionCase c = cases_for(p).front();
  c.shape.one_bias_of_entries = false;
  check(kernel, c, 3);
  EXPECT_EQ(ptx_sim::unseen_bias_strides(kernel, c, 3), std::vector<std::string>());
}

/// A call that TMA cannot address runs a kernel of the other template, which takes any alignment.
TEST(HopperAttention, FallsBackToAnyAlignment) {
  setenv("DEEPGEN_PTXAS", "none", 1);
  const Attention p = Attention::parse(
      "attention heads=4 kv_heads=2 head_dim=64 value_dim=64 q=bf16 kv=bf16 out=bf16 mask=causal "
      "queries=300 keys=600 options=varlen at_batch=1 at_queries=200 at_keys=410");
  const Config config = Config::parse(
      "consumers=2 resident=1 keys=80 ahead=0 stages=2 pingpong=1 rescale=1 soft=0 halfway=0 persistent=1");
  const KernelFile file = compile_candidate(p, kArch, {"hopper_attention", config}, false, true);
  ASSERT_EQ(file.status, "ok") << file.detail;
  ASSERT_NE(file.find("main"), nullptr);
  EXPECT_EQ(file.find("main")->align_a, 16);
  const Kernel* fallback = file.find("fallback");
  ASSERT_NE(fallback, nullptr);
  EXPECT_EQ(fallback->choice.text().rfind("mma_attention", 0), 0u) << fallback->choice.text();
  EXPECT_EQ(fallback->align_a, size_of(p.q));
}

/// Of causal masks, blocks of a persistent grid of 132 have about as much to do: told from the walk that
/// kernels make, whose every other round goes backwards.
TEST(HopperAttention, BlocksOfTheGridHaveAboutAsMuchWork) {
  for (int64_t dim : {64, 128, 256})
    for (int64_t tokens : {512, 2048, 8192}) {
      const int64_t heads = 2048 / dim, batch = 16384 / tokens;
      const std::string d = std::to_string(dim), h = std::to_string(heads), n = std::to_string(tokens);
      const Attention p = Attention::parse(
          "attention heads=" + h + " kv_heads=" + h + " head_dim=" + d + " value_dim=" + d +
          " q=bf16 kv=bf16 out=bf16 mask=causal queries=" + n + " keys=" + n +
          " options=none at_batch=" + std::to_string(batch) + " at_queries=" + n + " at_keys=" + n);
      const HopperAttentionTiling t(
          p, Config::parse("consumers=2 resident=1 keys=64 ahead=0 stages=2 pingpong=0 rescale=0 soft=0 "
                           "halfway=0 persistent=1"));
      const int64_t together = t.together(p), row_blocks = t.row_blocks(p), pairs = heads * batch;
      std::vector<int64_t> load(132);
      int64_t sum = 0;
      for (int64_t i = 0; i < row_blocks * pairs; ++i) {
        const int64_t section = i / (row_blocks * together), inside = i % (row_blocks * together);
        const int64_t number = inside / std::min(together, pairs - section * together);
        const int64_t work = 2 + 2 * (row_blocks - number), place = i % 132;
        load[size_t(i / 132 % 2 ? 131 - place : place)] += work, sum += work;
      }
      EXPECT_LE(double(*std::max_element(load.begin(), load.end())), 1.05 * double(sum) / 132)
          << p.key() << ", " << together << " at a time";
    }
}

TEST(HopperAttention, SpaceIsNeverEmpty) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Attention p = draw(seed, 3000);
    if (seed % 7 == 0) p.queries = p.keys = most_tokens;
    std::mt19937_64 random(seed);
    EXPECT_TRUE(draw_config(hopper(), p, generic_gpu(kArch), random)) << p.key();
  }
}

TEST(HopperAttention, SaysWhatItDoesNotServe) {
  Attention p;
  p.q = p.kv = Type::bf16;
  EXPECT_EQ(hopper().why_not(p, kArch), "");
  EXPECT_NE(hopper().why_not(p, "sm_80").find("sm_90a"), std::string::npos);
  p.head_dim = 60;
  EXPECT_NE(hopper().why_not(p, kArch).find("multiples of 8"), std::string::npos);
  p.head_dim = 64, p.value_dim = 320;
  EXPECT_NE(hopper().why_not(p, kArch).find("at most 256"), std::string::npos);
  p.q = p.kv = Type::f32;
  EXPECT_NE(hopper().why_not(p, kArch).find("TYPES f16 f16"), std::string::npos);
}

} // namespace
} // namespace deepgen::hopper_attention_test
