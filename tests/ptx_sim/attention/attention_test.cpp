// Random problems and configs of mma_attention on the simulated NVIDIA device, in the calls that verification
// makes: numbers against the f64 reference, bounds, races. More of them: PTX_SIM_ATTENTION=1000
// PTX_SIM_SEED=7.
#include "generator/codegen/compile.h"
#include "generator/space/sample.h"
#include "generator/space/space.h"
#include "templates/core/operator_template.h"
#include "templates/nvidia/attention/mma_attention.h"
#include "tests/ptx_sim/check/attention_check.h"
#include "tests/ptx_sim/from_environment.h"

#include "mlir/IR/BuiltinOps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <tuple>

namespace deepgen::attention_test {
namespace {

constexpr int kShares = 4;
const char* const kArchs[] = {"sm_80", "sm_89", "sm_90a"};

KernelFile compiled(const Attention& p, const std::string& arch, const Config& config,
                    const char* family = "mma_attention") {
  setenv("DEEPGEN_PTXAS", "none", 1); // the PTX is all that is wanted
  return compile_candidate(p, arch, {family, config}, true, false);
}

/// `sampled`: two cases of a kernel, chosen by the seed; else all.
void check(const KernelFile& file, uint64_t seed, bool sampled) {
  ASSERT_EQ(file.status, "ok") << file.detail << ": " << file.problem.key() << " | " << file.choice.text();
  for (const Kernel& kernel : file.kernels) {
    std::vector<AttentionCase> cases = cases_for(kernel.problem.attention());
    if (sampled) cases = {cases[seed % cases.size()], cases[(3 * seed + 1) % cases.size()]};
    for (const AttentionCase& c : cases)
      EXPECT_EQ(ptx_sim::check_attention(kernel, c, seed).fault, "")
          << "case '" << c.name << "', seed " << seed << ", " << kernel.role << ", " << file.arch << ": "
          << kernel.problem.key() << " | " << kernel.choice.text();
  }
}

/// A quarter of them each, so that ctest runs them in parallel.
class RandomAttention : public testing::TestWithParam<int> {};

TEST_P(RandomAttention, IsRightOnTheSimulatedDevice) {
  const uint64_t first = from_environment("PTX_SIM_SEED", 3) * 100000;
  const uint64_t count = from_environment("PTX_SIM_ATTENTION", 40);
  for (uint64_t i = uint64_t(GetParam()); i < count; i += kShares) {
    const Attention p = ptx_sim::draw_attention(first + i / kShares + 1000 * uint64_t(GetParam()), 90);
    const std::string arch = kArchs[i % std::size(kArchs)];
    std::mt19937_64 random(first + i);
    const auto config = draw_config(find_template("mma_attention"), p, generic_gpu(arch), random);
    ASSERT_TRUE(config) << p.key();
    check(compiled(p, arch, *config), first + i, true);
  }
}
INSTANTIATE_TEST_SUITE_P(Share, RandomAttention, testing::Range(0, kShares));

/// All calls, of each way to go over keys, with heads packed and not.
class EveryCall : public testing::TestWithParam<const char*> {};

TEST_P(EveryCall, IsRight) {
  for (const auto& [mask, dimension, bias] :
       {std::tuple("causal", "64", ""), std::tuple("window", "64", ""),
        std::tuple("causal_top_left", "32", " bias=f32")}) { // which takes registers
    const std::string d = dimension;
    const Attention p = Attention::parse("attention heads=4 kv_heads=2 head_dim=" + d + " value_dim=" + d +
                                         " q=bf16 kv=bf16 out=bf16 mask=" + mask +
                                         " queries=100 keys=600 options=varlen+lse+softcap+sink" + bias +
                                         " at_batch=1 at_queries=70 at_keys=150");
    const Config config = Config::parse(GetParam());
    ASSERT_EQ(find_template("mma_attention").why_illegal(p, generic_gpu("sm_90a"), config), "") << p.key();
    check(compiled(p, "sm_90a", config), 5, false);
  }
}
INSTANTIATE_TEST_SUITE_P(
    Configs, EveryCall,
    testing::Values("rows=64 warps=4 keys=32 stages=1 hold=0 pack=0 align=16 resident=1",
                    "rows=64 warps=2 keys=64 stages=2 hold=1 pack=1 align=16 resident=1",
                    "rows=128 warps=4 keys=32 stages=3 hold=0 pack=1 align=16 resident=1"));

/// All calls of splits: with pages, few queries, more splits than blocks of keys, calls that are not split.
TEST(MmaAttention, SplitKeysAreRightInEveryCall) {
  for (const auto& [options, rest] :
       {std::pair("page=16 splits=4", "stages=2 hold=1 pack=1 align=16 resident=1 splits=4"),
        std::pair("bias=f16 page=64 splits=64", "stages=1 hold=0 pack=0 align=2 resident=1 splits=64"),
        std::pair("splits=2 window=100,3", "stages=3 hold=0 pack=1 align=16 resident=1 splits=2")}) {
    const Attention p = Attention::parse(
        std::string("attention heads=4 kv_heads=2 head_dim=64 value_dim=64 q=bf16 kv=bf16 out=bf16 mask=") +
        (std::string(options).find("window") != std::string::npos ? "window" : "causal") +
        " queries=100 keys=600 options=varlen+lse+softcap+sink " + options +
        " at_batch=2 at_queries=8 at_keys=600");
    const Config config = Config::parse(std::string("rows=16 warps=1 keys=32 ") + rest);
    ASSERT_EQ(find_template("mma_attention").why_illegal(p, generic_gpu("sm_90a"), config), "") << p.key();
    check(compiled(p, "sm_90a", config), 6, false);
  }
}

/// What one call leaves behind, with blocks and warps in the order that `order` draws.
struct SplitResult {
  std::vector<uint8_t> bits;                            ///< of out and lse
  decltype(ptx_sim::GlobalMemory::Region::times) times; ///< when each byte of the workspace was written
};

SplitResult split_result(const Kernel& kernel, const AttentionCase& c, uint64_t order,
                         const std::function<void(ptx_sim::GlobalMemory::Region& workspace)>& between = {}) {
  const ptx_sim::Runner device = ptx_sim::runner(kernel);
  SplitResult result;
  size_t launches = 0;
  const auto run = [&](const Launch& l, const auto& arguments, ptx_sim::GlobalMemory& memory, uint64_t seed) {
    device(l, arguments, memory, 1000 * order + seed);
    ptx_sim::GlobalMemory::Region& workspace = memory.named("workspace");
    if (++launches == 1) result.times = workspace.times;
    if (launches == 1 && between) between(workspace);
    result.bits.clear();
    for (const char* name : {"out", "lse"}) {
      const std::vector<uint8_t>& bytes = memory.named(name).bytes;
      result.bits.insert(result.bits.end(), bytes.begin(), bytes.end());
    }
  };
  EXPECT_EQ(ptx_sim::check_attention(kernel, c, 7, run).fault, "") << c.name << ", order " << order;
  EXPECT_EQ(launches, 2u);
  return result;
}

struct SplitFamily {
  const char *name, *config;
};
void PrintTo(const SplitFamily& x, std::ostream* out) { *out << x.name << " " << x.config; }

class SplitAttention : public testing::TestWithParam<SplitFamily> {};
INSTANTIATE_TEST_SUITE_P(
    Families, SplitAttention,
    testing::Values(
        SplitFamily{"mma_attention",
                    "rows=16 warps=1 keys=32 stages=2 hold=1 pack=1 align=16 resident=1 splits=4"},
        SplitFamily{"hopper_attention",
                    "consumers=1 resident=1 keys=64 ahead=0 stages=2 pingpong=0 rescale=0 soft=0 halfway=0 "
                    "persistent=0 splits=4"}));

/// A kernel of a function that is tuned for several calls is right in all of them: those of many queries are
/// not split, and have no room in the workspace.
TEST_P(SplitAttention, OneKernelOfSeveralCallsIsRightInEachOfThem) {
  const Attention p = Attention::parse(
      "attention heads=4 kv_heads=2 head_dim=64 value_dim=64 q=bf16 kv=bf16 out=bf16 mask=causal queries=100 "
      "keys=600 options=varlen+lse at=2x1x300+1x70x90+3x1x600");
  const Config config = Config::parse(GetParam().config);
  ASSERT_EQ(why_illegal(p, "sm_90a", generic_gpu("sm_90a"), {GetParam().name, config}), "");
  const KernelFile file = compiled(p, "sm_90a", config, GetParam().name);
  const Kernel* main = file.find("main");
  ASSERT_TRUE(main) << file.detail;
  EXPECT_EQ(main->workspace, 4 * 3 * 4 * 4 * (16 + 4 * 64)) << "4 times 3 tokens, 4 heads, 4 parts";
  EXPECT_EQ(std::ranges::count_if(cases_for(p),
                                  [](const AttentionCase& c) { return c.name == std::string("as tuned"); }),
            3);
  check(file, 6, false);
}

/// Of rows' parts in the workspace, a split's maximum and sum come to stand beside another's sums.
TEST_P(SplitAttention, SumsBesideAnotherPartsMaximumAreFound) {
  const Attention p = Attention::parse(
      "attention heads=4 kv_heads=2 head_dim=64 value_dim=64 q=bf16 kv=bf16 out=f32 mask=causal queries=8 "
      "keys=600 options=lse splits=4 at_batch=2 at_queries=8 at_keys=600");
  const KernelFile file = compiled(p, "sm_90a", Config::parse(GetParam().config), GetParam().name);
  ASSERT_EQ(file.status, "ok") << file.detail;
  const Kernel& kernel = file.kernels.at(0);
  const AttentionCase c = cases_for(p).front();
  const int64_t record = attention_record_head + 4 * p.value_dim;
  const ptx_sim::Runner device = ptx_sim::runner(kernel);
  const auto with = [&](int64_t first, int64_t count) { // bytes of a part that the parts beside it have
    size_t launches = 0;
    return ptx_sim::check_attention(
        kernel, c, 7,
        [&](const Launch& l, const auto& arguments, ptx_sim::GlobalMemory& memory, uint64_t seed) {
          device(l, arguments, memory, seed);
          ptx_sim::GlobalMemory::Region& workspace = memory.named("workspace");
          if (++launches > 1) return;
          const auto end = workspace.bytes.end();
          for (auto part = workspace.bytes.begin() + int64_t(workspace.lead); end - part >= 2 * record;
               part += 2 * record)
            std::swap_ranges(part + first, part + first + count, part + record + first);
        });
  };
  EXPECT_EQ(with(0, record).fault, "") << "parts that are whole may change places";
  EXPECT_NE(with(0, attention_record_head).fault, "") << "maxima and sums";
  EXPECT_NE(with(0, 4).fault, "") << "maxima";
}

/// Parts are added up in the order of the splits, whichever block was first. The fault that is planted: parts
/// lie where they would if blocks took places as they came. It gives right numbers of other bits.
TEST_P(SplitAttention, BitsRepeat) {
  const Attention p = Attention::parse(
      "attention heads=4 kv_heads=2 head_dim=64 value_dim=64 q=bf16 kv=bf16 out=f32 mask=causal queries=8 "
      "keys=600 options=varlen+lse page=16 splits=4 at_batch=2 at_queries=8 at_keys=600");
  const KernelFile file = compiled(p, "sm_90a", Config::parse(GetParam().config), GetParam().name);
  ASSERT_EQ(file.status, "ok") << file.detail;
  const Kernel& kernel = file.kernels.at(0);
  const int64_t record = attention_record_head + 4 * p.value_dim;
  for (const AttentionCase& c : cases_for(p)) {
    if (std::string(c.name) != "as tuned" && std::string(c.name) != "a cache of keys") continue;
    const SplitResult first = split_result(kernel, c, 1);
    EXPECT_EQ(split_result(kernel, c, 1).bits, first.bits) << c.name;
    for (uint64_t order : {2, 3, 4}) {
      const SplitResult other = split_result(kernel, c, order);
      EXPECT_NE(other.times, first.times) << "blocks ran in the same order";
      EXPECT_EQ(other.bits, first.bits) << c.name << ", order " << order;
    }
    const SplitResult planted = split_result(kernel, c, 1, [&](ptx_sim::GlobalMemory::Region& workspace) {
      const auto end = workspace.bytes.end();
      for (auto row = workspace.bytes.begin() + int64_t(workspace.lead); end - row >= 4 * record;
           row += 4 * record)
        std::rotate(row, row + record, row + 4 * record);
    });
    EXPECT_NE(planted.bits, first.bits) << c.name << ": parts in another order are not found";
  }
}

/// Calls whose strides are wrong: of another query, head or entry, with heads packed and not, and of parts.
TEST(MmaAttention, ABiasOfAnotherRowIsFound) {
  for (const auto& [rest, splits] :
       {std::pair("pack=0 align=16 resident=1", ""), std::pair("pack=1 align=2 resident=1", ""),
        std::pair("pack=1 align=16 resident=1", "splits=2")}) {
    const Attention p = Attention::parse(
        std::string("attention heads=4 kv_heads=2 head_dim=32 value_dim=32 q=bf16 kv=bf16 out=bf16 mask=none "
                    "queries=100 keys=600 options=lse bias=bf16 ") +
        splits + (*splits ? " " : "") + "at_batch=2 at_queries=20 at_keys=150");
    const Config config = Config::parse(std::string("rows=32 warps=2 keys=32 stages=2 hold=0 ") + rest +
                                        (*splits ? std::string(" ") + splits : ""));
    const KernelFile file = compiled(p, "sm_90a", config);
    ASSERT_EQ(file.status, "ok") << file.detail;
    const Kernel& kernel = file.kernels.at(0);
    AttentionCase c = cases_for(p).front();
    c.shape.one_bias_of_entries = false;
    EXPECT_EQ(ptx_sim::check_attention(kernel, c, 3).fault, "");
    EXPECT_EQ(ptx_sim::unseen_bias_strides(kernel, c, 3), std::vector<std::string>()) << rest;
  }
}

/// The least scale that a call may pass, and what it would be below: 0, of which masked rows become NaN.
TEST(MmaAttention, TheLeastScaleIsRight) {
  const Attention p = Attention::parse(
      "attention heads=2 kv_heads=1 head_dim=64 value_dim=64 q=bf16 kv=bf16 out=bf16 mask=causal queries=40 "
      "keys=40 options=lse at_batch=1 at_queries=40 at_keys=40");
  const KernelFile file = compiled(
      p, "sm_90a", Config::parse("rows=64 warps=4 keys=32 stages=1 hold=0 pack=0 align=16 resident=1"));
  ASSERT_EQ(file.status, "ok") << file.detail;
  AttentionCase c = cases_for(p).front();
  for (double scale : {0x1p-126, -0x1p-126}) {
    c.shape.scale = scale;
    EXPECT_EQ(ptx_sim::check_attention(file.kernels.at(0), c, 1).fault, "") << scale;
  }
  c.shape.scale = 0x1p-150;
  EXPECT_NE(ptx_sim::check_attention(file.kernels.at(0), c, 1).fault, "")
      << "kernels take it: runtime/core/attention.cpp need not refuse it";
}

/// What a search has for a call with few queries of many keys, and nothing of it where there are many.
TEST_P(SplitAttention, SplitsAreAParameterOfFewQueries) {
  const Template& attention = find_template(GetParam().name);
  Attention p = Attention::parse("attention heads=32 kv_heads=8 head_dim=128 value_dim=128 q=bf16 kv=bf16 "
                                 "out=bf16 mask=causal queries=16 keys=32768 options=none at_batch=1 "
                                 "at_queries=1 at_keys=32768");
  const Device device = generic_gpu("sm_90a");
  const auto values_of = [&] {
    for (const Parameter& x : attention.parameters(p, device))
      if (x.name == "splits") return x.values;
    return std::vector<int64_t>();
  };
  EXPECT_EQ(values_of(), (std::vector<int64_t>{1, 2, 4, 8, 16, 32, 64}));
  const Config config = Space(p, "sm_90a", device).default_choice().config;
  EXPECT_GT(config["splits"], 1) << "the estimate leaves no GPU idle: " << config.text();
  p.splits = 8;
  EXPECT_EQ(values_of(), std::vector<int64_t>{8});
  p.splits = 0, p.queries = p.at_queries = 4096;
  EXPECT_EQ(values_of(), std::vector<int64_t>());
  p.calls = {{1, 32768, 1, 1}, {4096, 32768, 1, 1}};
  EXPECT_EQ(values_of().size(), 7u) << "of all calls where some have few queries";
  p = p.at(p.calls.back());
  EXPECT_EQ(values_of().size(), 7u) << "and of each";
}

/// Whatever the problem is that it serves, some config is legal.
TEST(MmaAttention, SpaceIsNeverEmpty) {
  const Template& attention = find_template("mma_attention");
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Attention p = ptx_sim::draw_attention(seed, 3000);
    if (seed % 5 == 0) p.head_dim = most_head_dim, p.value_dim = 256;
    if (seed % 7 == 0) p.queries = p.keys = most_tokens;
    for (const char* arch : kArchs) {
      ASSERT_EQ(attention.why_not(p, arch), "") << p.key();
      std::mt19937_64 random(seed);
      EXPECT_TRUE(draw_config(attention, p, generic_gpu(arch), random)) << p.key() << " on " << arch;
    }
  }
}

/// A family that was written before there were pages and splits.
class OlderFamily : public AttentionTemplate {
public:
  std::string name() const override { return "older"; }
  int64_t revision() const override { return 1; }
  std::string why_not(const Attention&, const std::string&) const override { return ""; }
  std::vector<Parameter> parameters(const Attention&, const Device&) const override { return {}; }
  std::string why_illegal(const Attention&, const Device&, const Config&) const override { return ""; }
  double cost(const Attention&, const Device&, const Config&) const override { return 1; }
  Attention awkward(const Attention& p, const Config&) const override { return p; }
  Kernel emit(mlir::ModuleOp, const Attention&, const std::string&, const Config&) const override {
    return {};
  }
};

TEST(Attention, AFamilyThatDoesNotKnowPagesRefusesThem) {
  const OlderFamily older;
  const Template& family = older;
  Attention p;
  EXPECT_EQ(family.why_not(Problem(p), "sm_90a"), "");
  p.page_size = 16;
  EXPECT_NE(family.why_not(Problem(p), "sm_90a").find("leave out PAGED"), std::string::npos);
  p.page_size = 0, p.bias = Type::f32;
  EXPECT_NE(family.why_not(Problem(p), "sm_90a").find("add a bias"), std::string::npos);
  p.bias.reset(), p.splits = 2;
  EXPECT_NE(family.why_not(Problem(p), "sm_90a").find("leave out SPLIT_KEYS"), std::string::npos);
}

TEST(MmaAttention, SaysWhatItDoesNotServe) {
  const Template& attention = find_template("mma_attention");
  Attention p;
  p.q = p.kv = Type::f32;
  EXPECT_NE(attention.why_not(p, "sm_90a").find("TYPES f16 f16"), std::string::npos);
  p.q = p.kv = Type::bf16;
  EXPECT_EQ(attention.why_not(p, "sm_80"), "");
  EXPECT_NE(attention.why_not(p, "gfx942").find("from sm_80 on"), std::string::npos);
  p.splits = 4, p.page_size = 16, p.bias = Type::f16;
  EXPECT_EQ(attention.why_not(p, "sm_80"), "");
  EXPECT_NE(find_template("cpu_attention").why_not(p, "cpu").find("leave out SPLIT_KEYS"), std::string::npos);
  p.splits = 0, p.page_size = 4;
  const Template& hopper = find_template("hopper_attention");
  EXPECT_NE(hopper.why_not(Problem(p), "sm_90a").find("mma_attention"), std::string::npos);
  EXPECT_EQ(find_template("cpu_attention").why_not(p, "cpu"), "");
  p.value_dim = 320;
  EXPECT_NE(attention.why_not(p, "sm_90a").find("at most 256"), std::string::npos);
}

} // namespace
} // namespace deepgen::attention_test
