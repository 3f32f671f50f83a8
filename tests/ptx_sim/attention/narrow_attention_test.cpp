// Attention of e4m3 on the simulated device: hopper_attention's warps that transpose values, its order of
// keys and its sums; what mma_attention makes of the same operands; and faults planted in right kernels. More
// of them: PTX_SIM_ATTENTION=1000 PTX_SIM_SEED=7.
#include "generator/codegen/compile.h"
#include "generator/space/sample.h"
#include "templates/core/operator_template.h"
#include "tests/ptx_sim/check/attention_check.h"
#include "tests/ptx_sim/from_environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>

namespace deepgen::narrow_attention_test {
namespace {

constexpr int kShares = 4;
constexpr const char* kArch = "sm_90a";

const Template& hopper() { return find_template("hopper_attention"); }

KernelFile compiled(const Attention& p, const std::string& arch, const Choice& choice, bool all) {
  setenv("DEEPGEN_PTXAS", "none", 1); // the PTX is all that is wanted
  KernelFile file = compile_candidate(p, arch, choice, all, all);
  EXPECT_EQ(file.status, "ok") << file.detail << ": " << p.key() << " | " << choice.text();
  return file;
}

Kernel compiled(const Attention& p, const std::string& config) {
  EXPECT_EQ(hopper().why_illegal(p, generic_gpu(kArch), Config::parse(config)), "") << p.key();
  return compiled(p, kArch, {"hopper_attention", Config::parse(config)}, false).kernels.at(0);
}

void check(const Kernel& kernel, const AttentionCase& c, uint64_t seed) {
  EXPECT_EQ(ptx_sim::check_attention(kernel, c, seed).fault, "")
      << "case '" << c.name << "', seed " << seed << ", " << kernel.role << ": " << kernel.problem.key()
      << " | " << kernel.choice.text();
}

Attention problem(const std::string& dimensions, const std::string& rest) {
  return Attention::parse("attention heads=2 kv_heads=1 " + dimensions + " q=e4m3 kv=e4m3 " + rest);
}

/// Any problem of e4m3 that the template serves.
Attention draw(uint64_t seed, int64_t largest) {
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t n) { return int64_t(random() % uint64_t(n)); };
  constexpr int64_t dimensions[] = {64, 128, 64, 128, 16, 48, 80, 96, 192, 256}, groups[] = {1, 2, 4, 7, 8};
  Attention p = ptx_sim::draw_attention(seed, largest);
  p.q = p.kv = Type::e4m3;
  p.page_size = 0;
  p.head_dim = dimensions[below(10)], p.value_dim = dimensions[below(8)];
  p.kv_heads = 1 + below(2), p.heads = p.kv_heads * groups[below(5)];
  return p;
}

class RandomNarrowAttention : public testing::TestWithParam<int> {};

TEST_P(RandomNarrowAttention, IsRightOnTheSimulatedDevice) {
  const uint64_t first = from_environment("PTX_SIM_SEED", 3) * 100000;
  const uint64_t count = from_environment("PTX_SIM_ATTENTION", 20);
  for (uint64_t i = uint64_t(GetParam()); i < count; i += kShares) {
    const Attention p = draw(first + i, 200);
    ASSERT_EQ(hopper().why_not(p, kArch), "") << p.key();
    std::mt19937_64 random(first + i);
    const auto config = draw_config(hopper(), p, generic_gpu(kArch), random);
    ASSERT_TRUE(config) << p.key();
    const Kernel kernel = compiled(p, config->text());
    const std::vector<AttentionCase> cases = cases_for(p);
    for (size_t at : {size_t(first + i), size_t(3 * (first + i) + 1)})
      check(kernel, cases[at % cases.size()], first + i);
  }
}
INSTANTIATE_TEST_SUITE_P(Share, RandomNarrowAttention, testing::Range(0, kShares));

/// Several blocks of rows and of keys, masked and not, in all calls; blocks of keys of one slice, and two.
class EveryNarrowCall : public testing::TestWithParam<const char*> {};

TEST_P(EveryNarrowCall, IsRight) {
  for (const char* mask : {"none", "causal", "window"}) {
    const Attention p = problem("head_dim=64 value_dim=64", std::string("out=bf16 mask=") + mask +
                                                                " queries=300 keys=600 "
                                                                "options=varlen+lse+softcap+sink at_batch=1 "
                                                                "at_queries=200 at_keys=410");
    const Kernel kernel = compiled(p, GetParam());
    for (const AttentionCase& c : cases_for(p)) check(kernel, c, 5);
  }
}
INSTANTIATE_TEST_SUITE_P(
    Configs, EveryNarrowCall,
    testing::Values(
        "consumers=1 resident=1 keys=64 ahead=0 stages=2 pingpong=0 rescale=1 soft=0 halfway=0 persistent=0",
        "consumers=2 resident=1 keys=160 ahead=1 stages=2 pingpong=1 rescale=1 soft=1 halfway=1 "
        "persistent=1",
        "consumers=3 resident=1 keys=96 ahead=0 stages=3 pingpong=0 rescale=1 soft=0 halfway=0 "
        "persistent=1",
        // Sums that stay in accumulators.
        "consumers=3 resident=1 keys=96 ahead=1 stages=2 pingpong=1 rescale=2 soft=0 halfway=0 "
        "persistent=1 promote=0",
        "consumers=2 resident=1 keys=160 ahead=0 stages=2 pingpong=0 rescale=0 soft=1 halfway=1 "
        "persistent=0 promote=0",
        "consumers=1 resident=1 keys=64 ahead=1 stages=3 pingpong=0 rescale=1 soft=0 halfway=0 "
        "persistent=1 promote=0"));

/// Keys that end with a block, one before, and one behind it; values of one dimension, keys of another.
TEST(NarrowAttention, BlocksOfKeysEndAnywhere) {
  const Attention p =
      problem("head_dim=48 value_dim=80", "out=f32 mask=none queries=300 keys=600 options=lse "
                                          "at_batch=1 at_queries=70 at_keys=384");
  const Kernel kernel = compiled(p, "consumers=1 resident=1 keys=192 ahead=0 stages=2 pingpong=0 rescale=1 "
                                    "soft=0 halfway=0 persistent=1");
  for (int64_t keys : {1, 31, 32, 33, 127, 128, 129, 191, 192, 193, 383, 384, 385}) {
    AttentionCase c;
    c.name = "keys about a block's", c.shape.queries = 65, c.shape.keys = keys;
    check(kernel, c, uint64_t(keys));
  }
}

/// Where a call does not lie as TMA wants, and on other GPUs: elements become f16.
TEST(NarrowAttention, AnyAlignmentIsServed) {
  const Attention p =
      problem("head_dim=64 value_dim=48", "out=f16 mask=causal queries=300 keys=600 options=varlen+lse "
                                          "at_batch=1 at_queries=70 at_keys=130");
  const KernelFile file =
      compiled(p, kArch,
               {"hopper_attention",
                Config::parse("consumers=1 resident=1 keys=64 ahead=0 stages=2 pingpong=0 rescale=1 soft=0 "
                              "halfway=0 persistent=1")},
               true);
  ASSERT_NE(file.find("fallback"), nullptr);
  EXPECT_EQ(file.find("fallback")->align_a, 1);
  for (const Kernel& kernel : file.kernels)
    for (const AttentionCase& c : cases_for(kernel.problem.attention())) check(kernel, c, 4);
}

TEST(NarrowAttention, EveryGpuServesPagesAndBias) {
  for (const char* arch : {"sm_80", "sm_89"}) {
    const Attention p =
        problem("head_dim=40 value_dim=24", "out=bf16 mask=none queries=90 keys=200 options=lse bias=f32 "
                                            "page=16 splits=2 at_batch=1 at_queries=30 at_keys=130");
    std::mt19937_64 random(5);
    const auto config = draw_config(find_template("mma_attention"), p, generic_gpu(arch), random);
    ASSERT_TRUE(config);
    for (const Kernel& kernel : compiled(p, arch, {"mma_attention", *config}, true).kernels)
      for (const AttentionCase& c : cases_for(kernel.problem.attention())) check(kernel, c, 4);
  }
}

constexpr const char *kPlain = "consumers=2 resident=1 keys=64 ahead=0 stages=2 pingpong=0 rescale=1 soft=0 "
                               "halfway=0 persistent=1",
                     *kStaying =
                         "consumers=2 resident=1 keys=64 ahead=0 stages=2 pingpong=0 rescale=2 soft=0 "
                         "halfway=0 persistent=1 promote=0";

/// What is put in the place of a piece of PTX; of one place each, or of all at once.
struct Planted {
  const char *pattern, *by;
  bool each = true;
};

/// In the cases of the problem, and in a few more.
template <size_t count>
void expect_found(const char* config, const Planted (&all)[count]) {
  const Attention p =
      problem("head_dim=64 value_dim=64", "out=bf16 mask=causal queries=300 keys=600 options=varlen+lse "
                                          "at_batch=1 at_queries=200 at_keys=410");
  const Kernel right = compiled(p, config);
  std::vector<AttentionCase> cases = cases_for(p);
  AttentionCase& masked = cases.emplace_back(); // the first consumer's last block of keys is masked, too
  masked.name = "all blocks masked", masked.shape.batch = 2, masked.shape.queries = 150,
  masked.shape.keys = 170;
  AttentionCase& negative = cases.emplace_back(); // which negates Q
  negative.name = "a negative scale", negative.shape.queries = 70, negative.shape.keys = 90;
  negative.shape.scale = -0.25;
  AttentionCase& rising = cases.emplace_back(); // maxima rise when there are sums
  rising.name = "scores far apart, many blocks", rising.shape.queries = 70, rising.shape.keys = 400;
  rising.shape.magnitude = 400;
  const auto fault = [&](const Kernel& k) {
    for (const AttentionCase& c : cases)
      if (const std::string found = ptx_sim::check_attention(k, c, 2).fault; !found.empty()) return found;
    return std::string();
  };
  ASSERT_EQ(fault(right), "");
  for (const Planted& x : all) {
    const std::regex pattern(x.pattern);
    int planted = 0;
    for (std::sregex_iterator i(right.ptx.begin(), right.ptx.end(), pattern), end; i != end; ++i, ++planted) {
      Kernel wrong = right;
      if (x.each)
        wrong.ptx.replace(size_t(i->position()), size_t(i->length()), x.by);
      else
        wrong.ptx = std::regex_replace(right.ptx, pattern, x.by);
      EXPECT_NE(fault(wrong), "") << "not found: " << x.by << " for " << i->str() << " at byte "
                                  << i->position();
    }
    EXPECT_GE(planted, 1) << x.pattern;
  }
}

TEST(NarrowAttention, PlantedFaultsAreFound) {
  const Planted all[] = {
      {R"(, 0x6420;)", ", 0x7531;"},                // another column
      {R"(, 0x6420;)", ", 0x5410;"},                // another order of keys
      {R"(, 0x7531;)", ", 0x7632;"},                // the same
      {R"(\.trans)", "", false},                    // not transposed
      {R"(stmatrix\.sync[^;]*;)", ""},              // not written
      {R"(0f41000000)", "0f40E00000"},              // sums of another scale
      {R"(-2139062144)", "-2139095040"},            // half of the signs of Q
      {R"(fence\.proxy\.async\.shared::cta;)", ""}, // writes that wgmma does not see
      {R"((@%p\d+ )?mbarrier\.arrive\.shared::cta\.b64 _, \[[^;]*;)", ""},
      {R"(wgmma\.wait_group\.sync\.aligned 0;)", ""},
      {R"(wgmma\.wait_group\.sync\.aligned 1;)", ""},
  };
  expect_found(kPlain, all);
}

TEST(NarrowAttention, FaultsOfSumsThatStayAreFound) {
  const Planted all[] = {
      {R"(setp\.eq\.b32 always, 0, 0;)", "setp.ne.b32 always, 0, 0;",
       false}, // each product is one of its own
      {R"(wgmma\.wait_group\.sync\.aligned 0;)", ""},
      {R"(0f3F4CCCCD)", "0f41000000", false}, // exponentials beyond what e4m3 holds
  };
  expect_found(kStaying, all);
}

TEST(NarrowAttention, SaysWhatItDoesNotServe) {
  Attention p;
  p.q = p.kv = Type::e4m3, p.head_dim = p.value_dim = 64;
  EXPECT_EQ(hopper().why_not(p, kArch), "");
  p.head_dim = 72;
  EXPECT_NE(hopper().why_not(p, kArch).find("multiples of 16"), std::string::npos);
  p.head_dim = 64, p.value_dim = 272;
  EXPECT_NE(hopper().why_not(p, kArch).find("at most 256"), std::string::npos);
  p.value_dim = 64, p.page_size = 64;
  EXPECT_EQ(hopper().why_not(p, kArch), "");
  p.page_size = 4;
  EXPECT_NE(hopper().why_not(p, kArch).find("PAGED 8 or more"), std::string::npos);
  EXPECT_EQ(find_template("mma_attention").why_not(p, kArch), "");
  EXPECT_NE(find_template("cpu_attention").why_not(p, "cpu").find("not e4m3"), std::string::npos);
  EXPECT_NE(find_template("mfma_attention").why_not(p, "gfx942").find("e4m3"), std::string::npos);
  p.page_size = 0, p.queries = p.at_queries = p.keys = p.at_keys = 500;
  const auto illegal = [&](const char* config) {
    return hopper().why_illegal(p, generic_gpu(kArch), Config::parse(config));
  };
  EXPECT_EQ(illegal(kPlain), "");
  EXPECT_EQ(illegal(kStaying), "");
  const auto changed = [&](const char* config, const char* from, const char* to) {
    return illegal(std::regex_replace(std::string(config), std::regex(from), to).c_str());
  };
  EXPECT_NE(changed(kPlain, "rescale=1", "rescale=2").find("rescale=1"), std::string::npos);
  EXPECT_NE(changed(kPlain, "keys=64", "keys=80").find("32"), std::string::npos);
  EXPECT_NE(changed(kStaying, "promote=0", "promote=1").find("rescale=1"), std::string::npos);
  p.keys = 32769; // of which tensor cores cut too much
  EXPECT_NE(illegal(kStaying).find("more than 32768"), std::string::npos);
  EXPECT_EQ(illegal(kPlain), "");
  p.value_dim = 256;
  EXPECT_NE(hopper().why_not(p, kArch).find("mma_attention serves it"), std::string::npos);
  p.keys = 32768;
  EXPECT_EQ(hopper().why_not(p, kArch), "");
  EXPECT_EQ(illegal(kStaying), "");
  EXPECT_NE(illegal(kPlain).find("registers"), std::string::npos);
}

} // namespace
} // namespace deepgen::narrow_attention_test
