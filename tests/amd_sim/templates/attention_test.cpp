// Random problems and configs of mfma_attention on the simulated AMD devices, in the calls that verification
// makes: numbers against the f64 reference, bounds, races, waits. More of them: AMD_SIM_ATTENTION=1000
// AMD_SIM_SEED=7.
#include "base/kernel/amd.h"
#include "generator/space/sample.h"
#include "tests/amd_sim/templates/attention_kernel.h"
#include "tests/amd_sim/templates/planted.h"
#include "tests/ptx_sim/from_environment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <tuple>

namespace deepgen::amd_sim::attention_test {
namespace {

constexpr int kShares = 4;
const char* const kArchs[] = {"gfx90a", "gfx942", "gfx950"};

/// `sampled`: two cases of a kernel, chosen by the seed; else all.
void check(const Compiled& c, uint64_t seed, bool sampled) {
  std::vector<AttentionCase> cases = cases_for(c.kernel.problem.attention());
  if (sampled) cases = {cases[seed % cases.size()], cases[(3 * seed + 1) % cases.size()]};
  for (const AttentionCase& each : cases)
    EXPECT_EQ(fault_of(c, each, seed), "")
        << "case '" << each.name << "', seed " << seed << ": --arch " << c.kernel.target << " --problem \""
        << c.kernel.problem.key() << "\" --config \"" << c.kernel.choice.text() << "\"";
}

/// A quarter of them each, so that ctest runs them in parallel.
class AmdRandomAttention : public testing::TestWithParam<int> {};

TEST_P(AmdRandomAttention, IsRightOnTheSimulatedDevice) {
  const uint64_t first = from_environment("AMD_SIM_SEED", 12) * 100000;
  const uint64_t count = from_environment("AMD_SIM_ATTENTION", 72);
  const Template& attention = find_template("mfma_attention");
  for (uint64_t i = uint64_t(GetParam()); i < count; i += kShares) {
    const Attention p = ptx_sim::draw_attention(first + i / kShares + 1000 * uint64_t(GetParam()), 90);
    const std::string arch = kArchs[i / kShares % std::size(kArchs)];
    std::mt19937_64 random(first + i);
    const auto config = draw_config(attention, p, generic_gpu(arch), random);
    ASSERT_TRUE(config) << p.key();
    check(attention_kernel(p, arch, config->text()), first + i, true);
    if (i % 5 == 0)
      check(attention_kernel(attention.awkward(p, *config).attention(), arch, config->text()), i, true);
  }
}
INSTANTIATE_TEST_SUITE_P(Share, AmdRandomAttention, testing::Range(0, kShares));

Attention problem(const std::string& mask, const std::string& rest) {
  return Attention::parse("attention heads=4 kv_heads=2 head_dim=64 value_dim=64 q=f16 kv=f16 out=f16 mask=" +
                          mask + " queries=100 keys=600 " + rest);
}

/// All calls, of each way to go over keys, with heads packed and not, and with keys shared out.
TEST(MfmaAttention, EveryCallIsRight) {
  const std::string all = "options=varlen+lse+softcap+sink", at = " at_batch=2 at_queries=8 at_keys=600";
  const std::tuple<const char*, Attention, const char*> rows[] = {
      {"gfx90a", problem("causal", all + " at_batch=1 at_queries=70 at_keys=150"),
       "rows=64 waves=4 keys=32 stages=1 pack=0 resident=1"},
      {"gfx942", problem("window", all + " bias=bf16 at_batch=1 at_queries=70 at_keys=150"),
       "rows=64 waves=2 keys=64 stages=2 pack=1 resident=1"},
      {"gfx950", problem("causal_top_left", all + " bias=f32 page=16 splits=4" + at),
       "rows=64 waves=4 keys=64 stages=2 pack=1 resident=1 splits=4"},
      {"gfx942", problem("none", all + " page=1 splits=64" + at),
       "rows=16 waves=1 keys=32 stages=1 pack=0 resident=1 splits=64"}};
  for (const auto& [arch, p, config] : rows) {
    ASSERT_EQ(find_template("mfma_attention").why_illegal(p, generic_gpu(arch), Config::parse(config)), "")
        << config;
    check(attention_kernel(p, arch, config), 5, false);
  }
}

/// Of calls that read another query's, head's or entry's.
TEST(MfmaAttention, ABiasOfAnotherRowIsFound) {
  const Attention p = problem("none", "options=lse bias=f16 at_batch=2 at_queries=20 at_keys=150");
  for (const char* pack : {"0", "1"}) {
    const Compiled c = attention_kernel(
        p, "gfx942", std::string("rows=64 waves=4 keys=32 stages=1 resident=1 pack=") + pack);
    AttentionCase each = cases_for(p).front();
    each.shape.one_bias_of_entries = false;
    EXPECT_EQ(fault_of(c, each, 3), "");
    const std::vector<std::string>& names = c.kernel.args;
    for (const char* stride : {"bias_query", "bias_head", "bias_batch"}) {
      const auto at = size_t(std::find(names.begin(), names.end(), stride) - names.begin());
      ASSERT_LT(at, names.size());
      Report report;
      const ptx_sim::Runner device = runner(c.kernel, c.ir, report);
      const auto planted = [&](const Launch& l, std::vector<std::vector<uint8_t>> arguments,
                               ptx_sim::GlobalMemory& memory, uint64_t seed) {
        std::fill(arguments[at].begin(), arguments[at].end(), uint8_t(0));
        device(l, arguments, memory, seed);
      };
      EXPECT_NE(ptx_sim::check_attention(c.kernel, each, 3, planted).fault, "") << stride << pack;
    }
  }
}

/// What a call leaves in out, where some bytes of an operand are others.
std::vector<uint16_t> out_of(const Compiled& c, const AttentionCase& each, const std::string& operand,
                             size_t first, size_t count, uint16_t bits) {
  Report report;
  const ptx_sim::Runner device = runner(c.kernel, c.ir, report);
  std::vector<uint16_t> out;
  ptx_sim::check_attention(
      c.kernel, each, 7,
      [&](const Launch& l, const auto& arguments, ptx_sim::GlobalMemory& memory, uint64_t seed) {
        if (count) {
          ptx_sim::GlobalMemory::Region& region = memory.named(operand);
          for (size_t i = first; i < first + count; ++i)
            std::memcpy(&region.bytes[region.lead + 2 * i], &bits, sizeof bits);
        }
        device(l, arguments, memory, seed);
        const ptx_sim::GlobalMemory::Region& region = memory.named("out");
        out.resize((region.bytes.size() - region.lead) / 2);
        std::memcpy(out.data(), region.bytes.data() + region.lead, 2 * out.size());
      });
  return out;
}

/// A row of Q that is NaN, or an element of it; of bf16, too, whose weights are rounded by bits.
TEST(MfmaAttention, ANanMakesItsRowNanAndNoOther) {
  for (const char* type : {"f16", "bf16"}) {
    const std::string t = type;
    const Attention p = Attention::parse("attention heads=2 kv_heads=1 head_dim=40 value_dim=32 q=" + t +
                                         " kv=" + t + " out=" + t +
                                         " mask=causal queries=37 keys=70 options=none at_batch=1 "
                                         "at_queries=37 at_keys=70");
    const Compiled c = attention_kernel(p, "gfx942", "rows=64 waves=4 keys=32 stages=1 pack=1 resident=1");
    const AttentionCase tuned = cases_for(p).front();
    const auto right = out_of(c, tuned, "q", 0, 0, 0);
    constexpr size_t token = 9, head = 1;
    for (size_t count : {1, 40}) {
      const auto found = out_of(c, tuned, "q", (token * 2 + head) * 40, count, 0x7fff);
      ASSERT_EQ(found.size(), right.size());
      for (size_t i = 0; i < right.size(); ++i) {
        const bool own = i / 32 == token * 2 + head;
        const uint16_t infinite = t == "f16" ? 0x7c00 : 0x7f80;
        if (own)
          ASSERT_GT(found[i] & 0x7fff, infinite) << t << ", element " << i << " is a number";
        else
          ASSERT_EQ(found[i], right[i]) << t << ", element " << i;
      }
    }
  }
}

/// No reads of fragments; nor writes, where rows of a tile are whole turns of the banks.
TEST(MfmaAttention, AccessesOfLdsDoNotConflict) {
  for (const char* arch : kArchs)
    for (const int d : {32, 64, 96, 128})
      for (const char* tile : {"keys=32 stages=1", "keys=64 stages=1"}) {
        const std::string n = std::to_string(d);
        const Attention p =
            Attention::parse("attention heads=1 kv_heads=1 head_dim=" + n + " value_dim=" + n +
                             " q=bf16 kv=bf16 out=bf16 mask=none queries=64 keys=150 "
                             "options=none at_batch=1 at_queries=64 at_keys=150");
        const Compiled c =
            attention_kernel(p, arch, std::string("rows=64 waves=4 pack=0 resident=1 ") + tile);
        Report report;
        EXPECT_EQ(fault_of(c, cases_for(p).front(), 1, &report), "");
        int reads = 0;
        for (const LdsAccess& a : report.lds) {
          EXPECT_EQ(a.bytes, 16u) << a.instruction;
          // Rows of 128 bytes: eight lanes write one, and all banks.
          const bool whole = d % 64 == 0 && std::string(tile).starts_with("keys=64");
          EXPECT_LE(a.conflict_factor, whole ? 1 : 2)
              << arch << " d=" << d << " " << tile << ": " << a.instruction;
          if (a.write) continue;
          ++reads;
          EXPECT_EQ(a.conflict_factor, 1) << arch << " d=" << d << " " << tile << ": " << a.instruction;
        }
        EXPECT_GE(reads, 4);
      }
}

class MfmaAttentionFaults : public testing::Test {
protected:
  static Compiled kernel(const char* arch, int stages, const std::string& bias = "") {
    const Attention p =
        problem("causal", "options=lse+sink" + bias + " at_batch=1 at_queries=70 at_keys=150");
    return attention_kernel(p, arch,
                            "rows=64 waves=4 keys=32 pack=1 resident=1 stages=" + std::to_string(stages));
  }
  /// In some calls with several blocks of keys, the last of which is not whole.
  static std::string find(const Compiled& c) {
    for (const AttentionCase& each : cases_for(c.kernel.problem.attention())) {
      const std::string name = each.name;
      if (name != "as tuned" && name != "several blocks of keys" && name != "more queries than keys")
        continue;
      if (std::string fault = fault_of(c, each, 1); !fault.empty()) return fault;
    }
    return "";
  }
};

TEST_F(MfmaAttentionFaults, MissingBarriersAndWaitsAreFound) {
  const std::string barrier = R"(.*call void @llvm\.amdgcn\.s\.barrier\(\).*\n)",
                    release = R"(.*fence syncscope\("workgroup"\) release.*\n)";
  for (int stages : {1, 2}) {
    const Compiled c = kernel("gfx942", stages);
    EXPECT_EQ(find(c), "");
    EXPECT_EQ(plant(c, barrier, "", find), 2);
    EXPECT_GE(plant(c, release, "", find), 1);
  }
}

TEST_F(MfmaAttentionFaults, WrongLanesAndOperandsAreFound) {
  const Compiled c = kernel("gfx950", 1);
  const std::string lanes = R"((@llvm\.amdgcn\.ds\.swizzle\(i32 [^,]*, i32 )(\d+))",
                    halves = R"((@llvm\.amdgcn\.ds\.bpermute\(i32 )[^,]*,)",
                    operands = R"((@llvm\.amdgcn\.mfma[^(]*\(<[^>]*> )([^,]*)(, <[^>]*> )([^,]*),)";
  EXPECT_GE(plant(c, lanes, "$0131", find), 2); // as $01 and 31: no exchange
  EXPECT_GE(plant(c, halves, "$010,", find), 2);
  EXPECT_GE(plant(c, operands, "$1$4$3$2,", find), 8);
}

/// By a key too far: of the mask, of the end of keys.
TEST_F(MfmaAttentionFaults, WrongBoundsAreFound) {
  const Compiled c = kernel("gfx90a", 1);
  EXPECT_GE(plant(c, R"(select i1 (%[^,]*), float (%[^,]*), float 0xFFF0000000000000)",
                  "select i1 $1, float $2, float $2", find),
            8);
}

/// Accesses of one kind, each by 16 bytes too far.
TEST_F(MfmaAttentionFaults, ShiftedAddressesAreFound) {
  const Compiled c = kernel("gfx942", 2);
  for (const auto& [access, space] : {std::pair(R"(%\d+ = load <)", "1"), std::pair("store", "1"),
                                      std::pair(R"(%\d+ = load)", "3"), std::pair("store", "3")})
    EXPECT_GE(
        plant(c, std::string("\n( *)(") + access + R"([^\n]*, ptr addrspace\()" + space + R"(\) )(%[^,]*),)",
              std::string("\n$1%planted = getelementptr i8, ptr addrspace(") + space +
                  ") $3, i32 16\n$1$2%planted,",
              find),
        1)
        << access << " " << space;
}

/// By eight keys too far, in whole blocks of keys and in the last one.
TEST_F(MfmaAttentionFaults, ABiasReadElsewhereIsFound) {
  const Compiled c = kernel("gfx942", 1, " bias=f16");
  EXPECT_EQ(find(c), "");
  for (const char* type : {"half", "<4 x half>"})
    EXPECT_GE(plant(c, std::string("\n( *)(%\\d+ = load ") + type + R"(, ptr addrspace\(1\) )(%[^,]*),)",
                    "\n$1%planted = getelementptr i8, ptr addrspace(1) $3, i32 16\n$1$2%planted,", find),
              2)
        << type;
}

/// Whatever the problem is that it serves, some config is legal, and the default among them.
TEST(MfmaAttention, SpaceIsNeverEmpty) {
  const Template& attention = find_template("mfma_attention");
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

TEST(MfmaAttention, SaysWhatItDoesNotServe) {
  const Template& attention = find_template("mfma_attention");
  Attention p;
  EXPECT_NE(attention.why_not(p, "gfx942").find("TYPES f16 f16"), std::string::npos);
  p.q = p.kv = Type::bf16;
  EXPECT_EQ(attention.why_not(p, "gfx90a"), "");
  EXPECT_NE(attention.why_not(p, "gfx1100").find("leave the arch out"), std::string::npos);
  EXPECT_NE(attention.why_not(p, "sm_90a").find("gfx950"), std::string::npos);
  p.value_dim = 320;
  EXPECT_NE(attention.why_not(p, "gfx942").find("at most 256"), std::string::npos);
}

TEST(MfmaAttention, SaysWhichRuleAConfigBreaks) {
  const Attention p = problem("causal", "options=none at_batch=1 at_queries=100 at_keys=600");
  const auto why = [&](const char* config) {
    return find_template("mfma_attention").why_illegal(p, generic_gpu("gfx942"), Config::parse(config));
  };
  const std::pair<const char*, const char*> rows[] = {
      {"rows=128 waves=4 keys=64 stages=2 pack=1 resident=1", ""},
      {"rows=32 waves=4 keys=64 stages=1 pack=0 resident=1", "no whole tiles of 16"},
      {"rows=128 waves=1 keys=64 stages=1 pack=0 resident=1", "128 rows of a wave"},
      {"rows=128 waves=2 keys=64 stages=1 pack=0 resident=1", "leave SIMDs idle"},
      {"rows=64 waves=4 keys=256 stages=2 pack=0 resident=1", "bytes of shared memory"},
      {"rows=64 waves=1 keys=128 stages=1 pack=0 resident=1", "registers of a lane"},
      {"rows=256 waves=8 keys=64 stages=1 pack=0 resident=1", "holds all 100 rows"},
      {"rows=64 waves=4 keys=32 stages=1 pack=0 resident=2", "as resident=1 does"},
      {"rows=64 waves=4 keys=256 stages=1 pack=0 resident=3", "has no room"}};
  for (const auto& [config, words] : rows)
    if (*words)
      EXPECT_NE(why(config).find(words), std::string::npos) << config << ": " << why(config);
    else
      EXPECT_EQ(why(config), "") << config;
}

} // namespace
} // namespace deepgen::amd_sim::attention_test
