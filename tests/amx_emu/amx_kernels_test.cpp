// Kernels of cpu_dot for AMX, run by the model of its tiles: on every host with AVX-512, whether it has AMX
// or not; those that write bf16 where it has AVX512-BF16. This process never asks for tiles, so that the CPU
// refuses them.
#include "tests/amx_emu/amx_trap.h"
#include "tests/numerics/dot_pairs.h"

#include <cstring>
#include <optional>

namespace deepgen::amx::amx_kernels_test {
namespace {

using namespace numerics;

/// Kernels of bf16 round by AVX512-BF16 where D is bf16. Where this CPU has not got it, the others are left.
const int64_t kIsa = 4 | isa_amx | (int64_t(cpu::usable_isa()) & isa_avx512bf16);

/// Where the instructions of AMX are in a kernel's code.
std::vector<size_t> places_of(const std::string& code, Op op) {
  std::vector<size_t> found;
  const auto* bytes = reinterpret_cast<const uint8_t*>(code.data());
  for (size_t i = 0; i + 11 < code.size(); ++i)
    if (const std::optional<Instruction> x = decode(bytes + i); x && x->op == op) found.push_back(i);
  return found;
}

/// The code with every instruction of AMX illegal for this process.
Kernel trapping(Kernel kernel) {
  auto* bytes = reinterpret_cast<uint8_t*>(kernel.code.data());
  for (size_t i = 0; i + 11 < kernel.code.size(); ++i) mark(bytes + i);
  return kernel;
}

struct Outcome {
  Verdict verdict;
  Trap trap;
};
void run(const Kernel& kernel, Outcome& out) {
  const std::unique_ptr<CaseSet> cases = subject_of(kernel.problem)->cases(7);
  out.verdict = cases->verify(LoadedKernel(trapping(kernel)), kernel.workspace, [](const std::string&) {});
}

class AmxKernels : public testing::Test {
protected:
  void SetUp() override {
    if (host_level() < 4) GTEST_SKIP() << "kernels with AMX are AVX-512 code, too";
  }
};
class AmxPairs : public AmxKernels, public testing::WithParamInterface<int> {};

/// All kernels of a config, run in every case; what they do to the tiles as well.
void expect_right(const Gemm& p, const Choice& choice) {
  SCOPED_TRACE(p.key() + " | " + choice.text());
  const KernelFile file = compile_candidate(p, "cpu", choice, false, false);
  ASSERT_EQ(file.status, "ok") << file.detail;
  for (const Kernel& kernel : file.kernels) {
    Outcome out;
    run(kernel, out);
    EXPECT_EQ(out.verdict.status, "ok") << out.verdict.detail;
    EXPECT_EQ(out.trap.wrong, nullptr) << out.trap.wrong;
    EXPECT_GT(out.trap.machine.products(), 0);
    EXPECT_EQ(out.trap.machine.count(Op::ldtilecfg), out.trap.machine.count(Op::tilerelease));
    EXPECT_FALSE(out.trap.machine.configured()) << "tiles are not given back";
  }
}

/// So many pairs of a problem and a config; `draw` makes a problem and takes one of its configs, if any
/// suits.
template <typename Draw>
void expect_pairs(int wanted, int most_tries, const Draw& draw) {
  int pairs = 0;
  for (int tries = 0; pairs < wanted && tries < most_tries; ++tries) {
    Gemm p;
    const std::optional<Choice> choice = draw(size_t(tries), p);
    if (!choice) continue;
    expect_right(p, *choice);
    ++pairs;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_EQ(pairs, wanted);
}

TEST_P(AmxPairs, MatchTheReference) {
  constexpr int kPairs = 30;
  Rng rng(5100 + uint32_t(GetParam()));
  expect_pairs(kPairs, 20 * kPairs, [&](size_t index, Gemm& p) -> std::optional<Choice> {
    p = random_dot(rng, index);
    if (rng() % 2) p.k = 64 * between(rng, 1, 5); // tiles in place
    const std::vector<Choice> choices = choices_for(p, kIsa, rng, 1);
    if (choices.empty()) return std::nullopt;
    return choices[0];
  });
}
INSTANTIATE_TEST_SUITE_P(Share, AmxPairs, testing::Range(0, 8));

/// Of problems with several blocks of K, a config that `suits` takes.
template <typename Suits>
void expect_blocks(uint32_t seed, const Suits& suits) {
  constexpr int kPairs = 5;
  Rng rng(seed);
  expect_pairs(kPairs, 40 * kPairs, [&](size_t index, Gemm& p) -> std::optional<Choice> {
    p = random_dot(rng, index);
    p.m = between(rng, 33, 120), p.n = between(rng, 33, 150), p.k = between(rng, 257, 900);
    if (rng() % 2) p.k = 64 * between(rng, 5, 14); // tiles of A in place
    for (const Choice& choice : choices_for(p, kIsa, rng, 60))
      if (suits(p, choice.config)) return choice;
    return std::nullopt;
  });
}

/// With loops=2: a column of tiles has all its blocks of K, of which there are several, one after the other.
class AmxColumns : public AmxPairs {};
TEST_P(AmxColumns, MatchTheReference) {
  expect_blocks(6100 + uint32_t(GetParam()),
                [](const Gemm&, const Config& config) { return config["loops"] == 2; });
}
INSTANTIATE_TEST_SUITE_P(Share, AmxColumns, testing::Range(0, 4));

/// All rows of A are in panels, with all their blocks of K, before the first of several blocks of N.
class AmxPackedOnce : public AmxPairs {};
TEST_P(AmxPackedOnce, MatchTheReference) {
  expect_blocks(7100 + uint32_t(GetParam()), [](const Gemm& p, const Config& config) {
    return config["pack"] && config["mc"] >= p.m && config["nc"] < p.n;
  });
}
INSTANTIATE_TEST_SUITE_P(Share, AmxPackedOnce, testing::Range(0, 4));

/// One call on dense operands.
void call(const Kernel& kernel) {
  const Gemm& p = kernel.problem.gemm();
  const auto zeros = [](int64_t count, Type type) {
    return std::vector<char>(size_t(count * size_of(type)));
  };
  std::vector<char> a = zeros(p.m * p.k, p.a), b = zeros(p.k * p.n, p.b), d = zeros(p.m * p.n, p.d);
  std::vector<char> scratch(size_t(kernel.workspace) + 64);
  SlotValues values{};
  values[DEEPGEN_ARG_A] = argument(a.data()), values[DEEPGEN_ARG_B] = argument(b.data());
  values[DEEPGEN_ARG_D] = argument(d.data());
  values[DEEPGEN_ARG_LDA] = uint64_t(p.a_columns()), values[DEEPGEN_ARG_LDB] = uint64_t(p.b_columns());
  values[DEEPGEN_ARG_LDD] = uint64_t(p.n);
  values[DEEPGEN_ARG_ALPHA] = argument(1.0, p.scale_type());
  values[DEEPGEN_ARG_WORKSPACE] = (argument(scratch.data()) + 63) / 64 * 64;
  LoadedKernel(trapping(kernel)).call(values);
}

/// What a kernel issues is what the tiles of its problem need: no more, whatever is read in place or packed.
TEST_F(AmxKernels, IssuesNoMoreThanItsTilesNeed) {
  for (Layout layout : {Layout::nn, Layout::nt})
    for (const Types& types :
         {Types{Type::bf16, Type::bf16, Type::f32}, Types{Type::i8, Type::i8, Type::i32}}) {
      Gemm p = of_types(types);
      p.m = 80, p.n = 48, p.k = 256, p.layout = layout;
      Rng rng(3);
      const int64_t chunks = p.k / (types.a == Type::i8 ? 64 : 32);
      const std::vector<Choice> choices = choices_for(p, kIsa, rng, 12);
      EXPECT_EQ(choices.empty(), types.a == Type::bf16 && types.d == Type::bf16 && !(kIsa & isa_avx512bf16));
      for (const Choice& choice : choices) {
        SCOPED_TRACE(p.key() + " | " + choice.text());
        const KernelFile file = compile_candidate(p, "cpu", choice, false, false);
        ASSERT_EQ(file.status, "ok") << file.detail;
        Trap trap;
        call(*file.find("main"));
        EXPECT_EQ(trap.wrong, nullptr) << trap.wrong;
        EXPECT_EQ(trap.machine.count(Op::ldtilecfg), 1);
        EXPECT_EQ(trap.machine.products(), 5 * 3 * chunks);
        // Each tile of sums takes two operands a step, of which two by two share.
        const int64_t loads = trap.machine.count(Op::tileload) + trap.machine.count(Op::tileload_t1);
        EXPECT_LE(loads, 2 * 5 * 3 * chunks + 5 * 3 * 8);
        EXPECT_GE(loads, 5 * 3 * chunks);
      }
    }
}

/// Whether vcvtneps2bf16 or vcvtne2ps2bf16 is in the code, or vdpbf16ps: EVEX, the map of 0F38, opcodes
/// 72, 52.
bool has_avx512bf16(const std::string& code) {
  for (size_t i = 0; i + 4 < code.size(); ++i) {
    const auto byte = [&](size_t at) { return uint8_t(code[i + at]); };
    const int prefix = byte(2) & 3, wide = byte(2) & 0x80;
    if (byte(0) != 0x62 || (byte(1) & 0x0f) != 2 || wide) continue;
    if ((byte(4) == 0x72 && prefix >= 2) || (byte(4) == 0x52 && prefix == 2)) return true;
  }
  return false;
}

/// No host is refused a kernel for instructions that are not in it.
TEST_F(AmxKernels, AskForWhatTheyUse) {
  const int64_t all = 4 | isa_amx | isa_avx512bf16 | isa_avx512vnni;
  int with = 0, without = 0;
  for (const Types& types : all_types()) {
    if (size_of(types.a) > 1 && types.a != Type::bf16) continue;
    for (bool gated : {false, true}) {
      if (gated && types.d == Type::i32) continue;
      Gemm p = of_types(types);
      p.m = 80, p.n = 48, p.k = 256, p.layout = Layout::nt;
      if (gated) p.gate = EpilogueOp::silu;
      Rng rng(3);
      const std::vector<Choice> choices = choices_for(p, all, rng, 4);
      EXPECT_FALSE(choices.empty()) << p.key();
      for (const Choice& choice : choices) {
        SCOPED_TRACE(p.key() + " | " + choice.text());
        const KernelFile file = compile_candidate(p, "cpu", choice, false, false);
        ASSERT_EQ(file.status, "ok") << file.detail;
        const Kernel& kernel = *file.find("main");
        const bool uses = has_avx512bf16(kernel.code);
        EXPECT_EQ(kernel.isa, uses ? 4 | isa_amx | isa_avx512bf16 : 4 | isa_amx);
        EXPECT_EQ(uses, types.a == Type::bf16 && types.d == Type::bf16);
        ++(uses ? with : without);
        const int64_t needed = uses ? 4 | isa_amx | isa_avx512bf16 : 4 | isa_amx;
        EXPECT_EQ(why_illegal(p, "cpu", device_of_isa(needed), choice), "");
      }
    }
  }
  EXPECT_GT(with, 0);
  EXPECT_GT(without, 0);
}

/// Faults that are put into a kernel's code.
struct Planted {
  const char* name;
  Op op;
  void (*change)(uint8_t* at);
};
const Planted kPlanted[] = {
    {"left and right exchanged", Op::bf16,
     [](uint8_t* at) {
       const int left = at[4] & 7, right = ~(at[2] >> 3) & 7;
       at[4] = uint8_t((at[4] & ~7) | right), at[2] = uint8_t((at[2] & ~0x78) | ((~left & 0xf) << 3));
     }},
    {"sums of another tile", Op::bf16, [](uint8_t* at) { at[4] ^= 0x08; }},
    {"a product that is left out", Op::bf16,
     [](uint8_t* at) {
       const uint8_t nop[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
       std::memcpy(at, nop, 5);
     }},
    {"the left tile is that of the right", Op::bf16,
     [](uint8_t* at) { at[4] = uint8_t((at[4] & ~7) | (~(at[2] >> 3) & 7)); }},
    {"sums are not cleared", Op::tilezero, [](uint8_t* at) { at[4] = uint8_t(0xc0 | 7 << 3); }},
    {"a tile is loaded to another place", Op::tileload, [](uint8_t* at) { at[4] ^= 0x08; }},
    {"rows are twice as far apart", Op::tileload, [](uint8_t* at) { at[5] ^= 0x40; }},
    {"a tile is stored to another place", Op::tilestore, [](uint8_t* at) { at[4] ^= 0x08; }},
    {"tiles are given back at once", Op::ldtilecfg,
     [](uint8_t* at) { // and what is left of it does nothing
       const int length = decode(at)->length;
       const uint8_t release[] = {0xc4, 0xe2, 0x78, 0x49, 0xc0};
       std::memcpy(at, release, 5);
       std::memset(at + 5, 0x90, size_t(length - 5));
     }},
};

TEST_F(AmxKernels, PlantedFaultsAreFound) {
  if (!(kIsa & isa_avx512bf16)) GTEST_SKIP() << "no AVX512-BF16, which kernels of bf16 round by";
  Gemm p = of_types({Type::bf16, Type::bf16, Type::bf16});
  p.m = 64, p.n = 64, p.k = 128, p.layout = Layout::nt;
  Rng rng(1);
  int kernels = 0;
  for (const Choice& choice : choices_for(p, kIsa, rng, 40)) {
    if (choice.config["mr"] != 32 || choice.config["nv"] != 2 || choice.config["kc"] != p.k) continue;
    if (++kernels > 3) break;
    const KernelFile file = compile_candidate(p, "cpu", choice, false, false);
    ASSERT_EQ(file.status, "ok") << file.detail;
    const Kernel& good = *file.find("main");
    for (const Planted& fault : kPlanted) {
      SCOPED_TRACE(choice.text() + ": " + fault.name);
      const std::vector<size_t> places = places_of(good.code, fault.op);
      ASSERT_FALSE(places.empty());
      Kernel bad = good;
      fault.change(reinterpret_cast<uint8_t*>(bad.code.data()) + places[0]);
      Outcome out;
      run(bad, out);
      EXPECT_TRUE(out.trap.wrong || out.verdict.status != "ok") << "not found";
    }
    Outcome out;
    run(good, out);
    EXPECT_EQ(out.verdict.status, "ok") << out.verdict.detail;
  }
  EXPECT_GT(kernels, 0);
}

} // namespace
} // namespace deepgen::amx::amx_kernels_test
