// hopper_attention with swapped operands: few rows of Q along wgmma's columns, in the calls that verification
// makes. More random ones: PTX_SIM_ATTENTION=1000 PTX_SIM_SEED=7.
#include "generator/codegen/compile.h"
#include "generator/space/space.h"
#include "templates/nvidia/hopper_attention/hopper_attention.h"
#include "tests/ptx_sim/attention/hopper_attention_kernel.h"
#include "tests/ptx_sim/attention/planted.h"
#include "tests/ptx_sim/from_environment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <random>

namespace deepgen::hopper_swap_test {
namespace {

constexpr int kShares = 4;
constexpr const char* kArch = "sm_90a";
constexpr const char* kBf16 = "q=bf16 kv=bf16 out=bf16";
constexpr const char* kPlain =
    "consumers=1 resident=1 keys=64 ahead=0 stages=2 pingpong=0 rescale=0 soft=0 halfway=0 persistent=1";

const Template& family() { return find_template("hopper_attention"); }

Attention problem(const std::string& types, const std::string& mask, const std::string& options,
                  int64_t group, int64_t tuned) {
  return Attention::parse("attention heads=" + std::to_string(2 * group) + " kv_heads=2 " + types +
                          " mask=" + mask + " queries=100 keys=600 options=" + options +
                          " at_batch=2 at_queries=" + std::to_string(tuned) + " at_keys=600");
}

/// Entries of any length, and no query, or no key, in some.
std::vector<AttentionCase> swapped_cases(const Attention& p) {
  std::vector<AttentionCase> cases = cases_for(p);
  AttentionCase& c = cases.emplace_back();
  c.name = "entries of any length", c.shape.batch = 12, c.shape.queries = 40, c.shape.keys = 600;
  if (p.varlen || p.paged()) c.shape.keys_used = {600, 129, 64, 0, 1, 200, 63, 65, 599, 128, 192, 300};
  if (p.varlen) c.shape.query_counts = {40, 1, 0, 3, 8, 17, 40, 5, 1, 2, 9, 33};
  return cases;
}

struct SwapCase {
  const char *types, *mask, *options, *config;
  int64_t group, tuned;
};
void PrintTo(const SwapCase& x, std::ostream* out) { *out << x.mask << " " << x.options; }

class EverySwappedCall : public testing::TestWithParam<SwapCase> {};

TEST_P(EverySwappedCall, IsRight) {
  const SwapCase& x = GetParam();
  const Attention p = problem(x.types, x.mask, x.options, x.group, x.tuned);
  const Kernel kernel = ptx_sim::attention_kernel(p, x.config);
  ptx_sim::expect_right(kernel, swapped_cases(p), 6);
}

/// Rows of 8 to 48, several tiles of keys and of values, parts of slices, rows that none is for.
INSTANTIATE_TEST_SUITE_P(
    Configs, EverySwappedCall,
    testing::Values(
        SwapCase{"head_dim=64 value_dim=64 q=bf16 kv=bf16 out=bf16", "none", "varlen+lse+softcap+sink",
                 "consumers=1 resident=1 keys=64 ahead=0 stages=2 pingpong=0 rescale=0 soft=0 halfway=0 "
                 "persistent=1 pack=1 splits=1 swap=1",
                 4, 1},
        SwapCase{"head_dim=128 value_dim=128 q=bf16 kv=bf16 out=bf16", "causal", "varlen+lse+sink page=16",
                 "consumers=1 resident=3 keys=64 ahead=0 stages=2 pingpong=0 rescale=0 soft=0 halfway=0 "
                 "persistent=0 pack=1 splits=4 swap=1",
                 8, 1},
        SwapCase{"head_dim=64 value_dim=128 q=f16 kv=f16 out=f32", "window", "varlen+lse page=64",
                 "consumers=1 resident=1 keys=128 ahead=1 stages=3 pingpong=0 rescale=0 soft=0 halfway=0 "
                 "persistent=1 pack=1 splits=2 swap=1",
                 7, 3},
        SwapCase{"head_dim=96 value_dim=40 q=f16 kv=f16 out=f16", "causal_top_left", "lse+softcap",
                 "consumers=1 resident=1 keys=192 ahead=0 stages=2 pingpong=0 rescale=0 soft=0 halfway=0 "
                 "persistent=1 pack=0 splits=2 swap=1",
                 2, 9},
        SwapCase{"head_dim=64 value_dim=64 q=bf16 kv=bf16 out=f16", "causal", "varlen+sink splits=8",
                 "consumers=1 resident=2 keys=64 ahead=1 stages=2 pingpong=0 rescale=0 soft=0 halfway=0 "
                 "persistent=1 pack=1 splits=8 swap=1",
                 4, 12},
        SwapCase{"head_dim=64 value_dim=64 q=bf16 kv=bf16 out=bf16", "window", "none",
                 "consumers=1 resident=1 keys=64 ahead=0 stages=4 pingpong=0 rescale=0 soft=0 halfway=0 "
                 "persistent=0 splits=1 swap=1",
                 1, 33}));

/// Few queries of any problem that swap serves.
Attention draw(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t n) { return int64_t(random() % uint64_t(n)); };
  constexpr int64_t dimensions[] = {64, 128, 64, 128, 96, 192, 256, 8, 40, 80}, groups[] = {1, 4, 7, 8};
  Attention p = ptx_sim::draw_attention(seed, 200);
  p.bias.reset();
  if (p.paged()) p.page_size = int64_t(8) << seed % 8;
  p.head_dim = dimensions[below(10)], p.value_dim = below(3) ? p.head_dim : dimensions[below(10)];
  p.kv_heads = 1 + below(2), p.heads = p.kv_heads * groups[below(4)];
  p.at_queries = std::min(p.queries, 1 + below(below(3) ? 6 : 48 / p.group()));
  return p;
}

/// Any legal config with swap=1, of which draw_config() finds few.
std::optional<Config> draw_swapped(const Attention& p, std::mt19937_64& random) {
  const std::vector<Parameter> parameters = family().parameters(Problem(p), generic_gpu(kArch));
  for (int attempt = 0; attempt < 1000; ++attempt) {
    Config config = Config::parse("consumers=1 pingpong=0 rescale=0 soft=0 halfway=0 swap=1"), drawn;
    for (const Parameter& x : parameters) {
      const auto fixed = std::find_if(config.values.begin(), config.values.end(),
                                      [&](const auto& value) { return value.first == x.name; });
      drawn.values.emplace_back(x.name, fixed != config.values.end() ? fixed->second
                                                                     : x.values[random() % x.values.size()]);
    }
    if (family().why_illegal(p, generic_gpu(kArch), drawn).empty()) return drawn;
  }
  return std::nullopt;
}

class RandomSwapped : public testing::TestWithParam<int> {};

TEST_P(RandomSwapped, IsRightOnTheSimulatedDevice) {
  const uint64_t first = from_environment("PTX_SIM_SEED", 3) * 100000;
  const uint64_t count = from_environment("PTX_SIM_ATTENTION", 24);
  for (uint64_t i = uint64_t(GetParam()); i < count; i += kShares) {
    const Attention p = draw(first + i);
    ASSERT_EQ(family().why_not(p, kArch), "") << p.key();
    std::mt19937_64 random(first + i);
    const auto config = draw_swapped(p, random);
    ASSERT_TRUE(config) << p.key();
    const Kernel kernel = ptx_sim::attention_kernel(p, *config);
    const std::vector<AttentionCase> cases = swapped_cases(p);
    for (size_t at : {size_t(first + i), size_t(3 * (first + i) + 1)})
      ptx_sim::expect_right(kernel, cases[at % cases.size()], first + i);
  }
}
INSTANTIATE_TEST_SUITE_P(Share, RandomSwapped, testing::Range(0, kShares));

/// What the warps of a swapped consumer owe each other, and the rings.
TEST(HopperSwap, PlantedFaultsAreFound) {
  const Attention p =
      problem("head_dim=64 value_dim=64 q=f16 kv=f16 out=f16", "causal", "varlen+lse page=16", 2, 12);
  const Kernel right = ptx_sim::attention_kernel(p, std::string(kPlain) + " pack=1 splits=2 swap=1");
  std::vector<AttentionCase> cases;
  for (int64_t keys : {110, 70, 300}) { // many masked keys in two blocks, or blocks of them
    AttentionCase& c = cases.emplace_back();
    c.name = "great scores", c.shape.batch = 2, c.shape.queries = 70, c.shape.keys = keys;
    c.shape.magnitude = 300;
  }
  AttentionCase& negative = cases.emplace_back(cases.back());
  negative.name = "a negative scale", negative.shape.scale = -0.2;
  cases.push_back(cases_for(p).front()); // split
  cases.push_back(swapped_cases(p).back());
  ASSERT_EQ(ptx_sim::first_fault(right, cases), "");
  const ptx_sim::PlantedFault all[] = {
      {R"(bar\.sync\s+%r\d+, 128;)", ""},
      {R"(stmatrix\.sync[^;]*;)", ""},
      {R"(m8n8\.x4\.trans)", "m8n8.x4"},
      {R"(fence\.proxy\.async\.shared::cta;)", ""},
      {R"(wgmma\.wait_group\.sync\.aligned \d;)", ""},
      {R"((@%p\d+ )?mbarrier\.arrive\.shared::cta\.b64 _, \[[^;]*;)", ""},
      {R"(wgmma\.mma_async[^;]*da, db, always, 1, 1, 0, 0;)", ""},
      {R"(shfl\.sync\.bfly\.b32\s+(%r\d+), (%r\d+), (4|8|16), 31, -1;)", "mov.b32 $1, $2;"},
      {R"(st\.shared\.v2\.b32\s+\[%rd\d+\][^;]*;)", ""}, // what warps tell
  };
  for (const ptx_sim::PlantedFault& x : all) ptx_sim::expect_found(right, cases, x);
}

/// Rows of another token or head, and what one stores of them.
TEST(HopperSwap, RowsOfAnotherTokenOrHeadAreFound) {
  for (const char* splits : {"1", "2"}) {
    const Attention p = problem(std::string("head_dim=64 value_dim=64 ") + kBf16, "causal",
                                std::string("lse splits=") + splits, 4, 8);
    const Kernel kernel = ptx_sim::attention_kernel(
        p, Config::parse(std::string(kPlain) + " pack=1 splits=" + splits + " swap=1"));
    const AttentionCase c = cases_for(p).front();
    ptx_sim::expect_right(kernel, c, 3);
    EXPECT_EQ(ptx_sim::unseen_strides(kernel, c, 3,
                                      {"q_token", "q_head", "q_batch", "out_token", "out_head", "out_batch",
                                       "lse_token", "lse_head"}),
              std::vector<std::string>());
  }
}

/// Scores that hardly differ, that rise from block to block of keys, and that leave one weight.
TEST(HopperSwap, ScoresOfAnyMagnitudeAreRight) {
  const Attention p = problem("head_dim=64 value_dim=64 q=f16 kv=f16 out=f32", "causal", "varlen+lse", 7, 2);
  const Kernel kernel =
      ptx_sim::attention_kernel(p, Config::parse(std::string(kPlain) + " pack=1 splits=1 swap=1"));
  for (double magnitude : {1e-3, 8.0, 100.0, 2000.0, 3e4}) {
    AttentionCase c;
    c.name = "scores of a magnitude", c.shape.queries = 30, c.shape.keys = 411, c.shape.magnitude = magnitude;
    ptx_sim::expect_right(kernel, c, 2);
    c.name = "rows without keys", c.shape.keys = 17;
    ptx_sim::expect_right(kernel, c, 2);
  }
}

/// Configs that were written before there was swap have none, and their kernels are what they were.
TEST(HopperSwap, ConfigsWithoutSwapHaveNone) {
  const Attention p = problem(std::string("head_dim=64 value_dim=64 ") + kBf16, "causal", "varlen+lse", 4, 1);
  const auto ptx = [&](const char* more) {
    return ptx_sim::attention_kernel(p, Config::parse(std::string(kPlain) + " pack=1 splits=2" + more)).ptx;
  };
  EXPECT_EQ(ptx(""), ptx(" swap=0"));
  EXPECT_NE(ptx(""), ptx(" swap=1"));
}

TEST(HopperSwap, SaysWhereItDoesNotServe) {
  const std::string dims = "head_dim=64 value_dim=64 ", sixteen = dims + kBf16;
  const auto why = [&](const Attention& p, const std::string& config) {
    return family().why_illegal(p, generic_gpu(kArch), Config::parse(config));
  };
  const std::string packed = std::string(kPlain) + " pack=1 splits=1 swap=1";
  EXPECT_EQ(why(problem(sixteen, "causal", "lse", 4, 12), packed), "");
  EXPECT_NE(why(problem(sixteen, "causal", "lse", 4, 13), packed).find("52 rows"), std::string::npos);
  EXPECT_NE(why(problem(sixteen, "causal", "lse bias=f32", 4, 1), packed).find("BIAS"), std::string::npos);
  EXPECT_NE(why(problem(dims + "q=e4m3 kv=e4m3 out=bf16", "causal", "lse", 4, 1), packed).find("e4m3"),
            std::string::npos);
  const Attention p = problem(sixteen, "causal", "lse", 4, 1);
  for (const auto& [from, to] : {std::pair("consumers=1", "consumers=2"),
                                 {"keys=64", "keys=80"},
                                 {"rescale=0", "rescale=1"},
                                 {"soft=0", "soft=1"},
                                 {"halfway=0", "halfway=1"}}) {
    std::string config = packed;
    config.replace(config.find(from), std::string(from).size(), to);
    EXPECT_NE(why(p, config).find("swap=1"), std::string::npos) << to;
  }
}

/// The space has it where rows are few, and only there.
TEST(HopperSwap, IsAParameterOfFewRows) {
  const std::string sixteen = std::string("head_dim=64 value_dim=64 ") + kBf16;
  const auto has = [&](const Attention& p) {
    const std::vector<Parameter> all = family().parameters(Problem(p), generic_gpu(kArch));
    return all.back().name == "swap";
  };
  EXPECT_TRUE(has(problem(sixteen, "causal", "lse", 4, 1)));
  EXPECT_TRUE(has(problem(sixteen, "causal", "lse", 1, 48)));
  EXPECT_FALSE(has(problem(sixteen, "causal", "lse", 1, 49)));
  EXPECT_FALSE(has(problem(sixteen, "causal", "lse bias=f32", 4, 1)));
  EXPECT_FALSE(has(problem("head_dim=64 value_dim=64 q=e4m3 kv=e4m3 out=bf16", "causal", "lse", 4, 1)));
}

} // namespace
} // namespace deepgen::hopper_swap_test
