// B packed ahead of calls: every type that CPUs multiply, with every instruction of this host, against the
// reference and against the same config with B as it is stored.
#include "base/problem/packed_b.h"
#include "measure/cpu/gemm_subject.h"
#include "tests/numerics/dot_pairs.h"

#include <cstring>
#include <set>

namespace deepgen::packed_test {
namespace {

using namespace numerics;

std::vector<int64_t> isas_here() {
  std::vector<int64_t> here;
  for (int64_t isa : {int64_t(1), int64_t(3), 3 | isa_avxvnni, int64_t(4), 4 | isa_avx512vnni,
                      4 | isa_avx512bf16, 4 | isa_amx | isa_avx512bf16})
    if (runs_on(isa, int64_t(cpu::usable_isa()))) here.push_back(isa);
  return here;
}

/// Of f32 and f64 as often as of the other types; these may have a range of M.
Gemm random_packed(Rng& rng, size_t index) {
  Gemm p = random_dot(rng, index);
  if (rng() % 2) {
    p.a = p.b = p.d = rng() % 3 ? Type::f32 : Type::f64;
    if (p.gate || rng() % 2)
      std::erase_if(p.epilogue,
                    [](EpilogueOp op) { return op == EpilogueOp::scale_a || op == EpilogueOp::scale_b; });
    complete(p);
    if (rng() % 6 == 0) p.least[size_t(Size::m)] = 0, p.m = std::max<int64_t>(p.m, 2);
  }
  p.packed_b = true;
  if (rng() % 6 == 0) {
    p.a = p.d = Type::f32, p.b = rng() % 2 ? Type::bf16 : Type::i8, p.least = {};
    complete(p);
  }
  validate(p);
  return p;
}

/// A config for this CPU's instructions, or for lesser ones.
std::vector<Choice> choices_of(const Gemm& p, int64_t isa, Rng& rng, size_t count) {
  if (p.a != p.b || (p.a != Type::f32 && p.a != Type::f64)) return choices_for(p, isa, rng, count);
  if (isa != level_of(isa)) return {};
  const Space space(p, "cpu", device_of_level(isa));
  std::vector<Choice> found;
  while (space.size() && found.size() < count) found.push_back(space.choice(rng() % space.size()));
  return found;
}

class PackedPairs : public testing::TestWithParam<int> {};

TEST_P(PackedPairs, MatchTheReference) {
  constexpr int kPairs = 50;
  const std::vector<int64_t> isas = isas_here();
  Rng rng(23000 + uint32_t(GetParam()));
  int pairs = 0;
  for (int tries = 0; pairs < kPairs && tries < 20 * kPairs; ++tries) {
    const Gemm p = random_packed(rng, size_t(tries));
    const std::vector<Choice> choices = choices_of(p, isas[rng() % isas.size()], rng, 1);
    if (choices.empty()) continue; // bf16 has no use for vpdpbusd, say
    SCOPED_TRACE(p.key() + " | " + choices[0].text());
    const KernelFile file = compile_candidate(p, "cpu", choices[0], true, pairs % 10 == 0);
    for (const Kernel& kernel : file.kernels)
      EXPECT_EQ(kernel.packed_b, packed_layout_text(kernel.problem.gemm())) << kernel.role;
    pairs += verify_all(file, choices[0].text()) > 0;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_EQ(pairs, kPairs);
}
INSTANTIATE_TEST_SUITE_P(Share, PackedPairs, testing::Range(0, 8));

/// Vectors of four columns by four of K, with every remainder of K, and B asked for ahead by every share.
TEST(PackedQuads, MatchTheReference) {
  Rng rng(37);
  std::set<std::string> seen; // level, remainder, whether a tile has a block of B for itself
  for (int tries = 0; tries < 400 && seen.size() < 24; ++tries) {
    Gemm p;
    p.a = p.d = Type::f32, p.b = Type::i8, p.packed_b = true, p.layout = rng() % 2 ? Layout::nn : Layout::nt;
    p.m = pick(rng, {1, 2, 3, 7}), p.n = pick(rng, {5, 32, 70}), p.k = 1 + int64_t(rng() % 70);
    p.epilogue = {EpilogueOp::scale_col};
    complete(p);
    const int64_t level = pick(rng, {1, 3, 4});
    if (!runs_on(level, int64_t(cpu::usable_isa()))) continue;
    const Space space(p, "cpu", device_of_level(level));
    const Choice choice = space.choice(rng() % space.size());
    if (choice.config["form"] != 3 || choice.config["isa"] != level || !choice.config["prefetch"]) continue;
    const bool alone = choice.config["mr"] >= p.m;
    if (!seen.insert(std::to_string(level) + " " + std::to_string(p.k % 4) + (alone ? " alone" : " shared"))
             .second)
      continue;
    SCOPED_TRACE(p.key() + " | " + choice.text());
    verify_all(compile_candidate(p, "cpu", choice, true, false), choice.text());
  }
  EXPECT_GE(seen.size(), 16u);
}

/// Whatever the problem and the level, some config is legal, and so are the fallbacks'.
TEST(PackedSpace, IsNeverEmpty) {
  Rng rng(29);
  for (size_t i = 0; i < 300; ++i) {
    Gemm p = random_packed(rng, i);
    if (i % 3 == 0) p.m = pick(rng, {1, 2, 3, 4, 5, 7, 1000, 4097}), p.least = {};
    if (i % 3 == 1) p.n = pick(rng, {1, 2, 3, 1000, 4097});
    for (int64_t isa : {int64_t(1), int64_t(3), 3 | isa_avxvnni, int64_t(4), 4 | isa_avx512vnni,
                        4 | isa_avx512bf16, 4 | isa_amx | isa_avx512bf16 | isa_avx512vnni}) {
      const Space space(p, "cpu", device_of_isa(isa));
      ASSERT_GT(space.size(), 0u) << p.key() << " on " << isa_text(isa);
    }
  }
}

/// The bytes of D of one call on operands that follow from the problem's sizes and types alone.
std::string result_of(const Gemm& p, const Choice& choice) {
  const KernelFile file = compile_candidate(p, "cpu", choice, false, false);
  EXPECT_EQ(file.status, "ok") << file.detail;
  const Kernel& kernel = *file.find("main");
  const GemmOperands operands(p, kernel.workspace, 11);
  LoadedKernel(kernel).call(operands.values());
  return std::string(static_cast<const char*>(operands.buffers().d),
                     size_t(p.m * p.n * p.batch * size_of(p.d)));
}

/// The same sums in the same order. For a B as it is stored cpu_tile packs it, too.
TEST(PackedBits, AreThoseOfTheSameConfigWithoutPacking) {
  Rng rng(31);
  std::set<std::string> types;
  const std::vector<int64_t> isas = isas_here();
  for (int tries = 0; tries < 3000 && types.size() < 20; ++tries) {
    Gemm p = random_packed(rng, size_t(tries)), plain = p;
    p.least = plain.least = {}, plain.packed_b = false;
    if (p.a == Type::f32 && p.b != Type::f32) continue; // no function has these without packing
    const int64_t isa = isas[rng() % isas.size()];
    for (const Choice& choice : choices_of(p, isa, rng, 1)) {
      Choice other = choice;
      if (choice.template_name == "cpu_tile")
        other.config.set("pack", other.config["pack"] | 2), other.config.set("prefetch", 0);
      else
        std::erase_if(other.config.values, [](const auto& x) { return x.first == "prefetch"; });
      if (!why_illegal(plain, "cpu", device_of_isa(isa), other).empty()) continue;
      SCOPED_TRACE(p.key() + " | " + choice.text());
      ASSERT_EQ(result_of(p, choice), result_of(plain, other));
      types.insert(to_string(p.a) + " " + to_string(p.d) + " " + isa_text(isa));
    }
  }
  EXPECT_EQ(types.size(), 20u);
}

} // namespace
} // namespace deepgen::packed_test
