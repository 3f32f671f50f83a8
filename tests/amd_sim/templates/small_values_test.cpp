// Every 8-bit float through every template that multiplies it, alone in its sum: subnormals, the largest,
// infinity, NaN and both zeros arrive as they are, on each chip.
#include "base/kernel/amd.h"
#include "templates/core/cheapest.h"
#include "tests/amd_sim/check/compiled.h"
#include "tests/amd_sim/machine/launch.h"
#include "tests/ptx_sim/check/operands.h"
#include "tests/ptx_sim/program/fault.h"
#include "tests/ptx_sim/program/numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <sstream>

namespace deepgen::amd_sim::small_values_test {
namespace {

using ptx_sim::Format;

constexpr int64_t kEncodings = 256, kOther = 16, kDepth = 32;

Format format_of(Type t) { return t == Type::e4m3 ? Format::e4m3 : Format::e5m2; }

/// The one that stands at k = number % kDepth of row (or column) `number`, between zeros; the other operand
/// is 1 everywhere.
class EveryValue {
public:
  EveryValue(const Kernel& k, bool in_a)
      : kernel_(k), in_a_(in_a), operands_(k, {"plain", false, 1, 0, cuda::CallCase::absent}, 1) {
    const Gemm& p = k.problem.gemm();
    const uint64_t one = encode(format_of(in_a ? p.b : p.a), 1);
    for (int64_t i = 0; i < kEncodings; ++i)
      for (int64_t at = 0; at < kDepth; ++at) put(in_a, i, at, at == i % kDepth ? uint64_t(i) : 0);
    for (int64_t i = 0; i < kOther; ++i)
      for (int64_t at = 0; at < kDepth; ++at) put(!in_a, i, at, one);
  }

  void run(const std::string& ir) {
    std::vector<std::vector<uint8_t>> arguments;
    for (const std::string& name : kernel_.args) arguments.push_back(operands_.argument(kernel_, name));
    for (const deepgen::Launch& l : kernel_.launches)
      run_launch(ir, kernel_.target, {l.entry, l.grid, l.block}, arguments, operands_.memory, 1);
  }

  /// What of D is not the value: how many elements, and the first.
  std::string wrong() const {
    const Gemm& p = kernel_.problem.gemm();
    std::ostringstream first;
    int64_t count = 0;
    for (int64_t i = 0; i < kEncodings; ++i)
      for (int64_t j = 0; j < kOther; ++j) {
        const double expected = decode(format_of(in_a_ ? p.a : p.b), uint64_t(i));
        const double found = operands_.element(operands_.matrices.at("d"), 0, in_a_ ? i : j, in_a_ ? j : i);
        if (found == expected || (std::isnan(found) && std::isnan(expected))) continue;
        if (count++ == 0) first << "encoding " << i << " is " << found << " instead of " << expected;
      }
    return count ? first.str() + ", " + std::to_string(count) + " elements are wrong" : "";
  }

private:
  /// Row `i` of A, or column `i` of B; the layout is nt.
  void put(bool of_a, int64_t i, int64_t at, uint64_t bits) {
    const ptx_sim::Matrix& x = operands_.matrices.at(of_a ? "a" : "b");
    operands_.memory[x.region].bytes[size_t(x.bytes_at(0, i, at))] = uint8_t(bits);
  }

  const Kernel& kernel_;
  const bool in_a_;
  ptx_sim::Operands operands_;
};

Gemm problem(Type a, Type b, bool in_a) {
  std::ostringstream key;
  key << "gemm m=" << (in_a ? kEncodings : kOther) << " n=" << (in_a ? kOther : kEncodings) << " k=" << kDepth
      << " batch=1 a=" << to_string(a) << " b=" << to_string(b)
      << " d=f32 acc=f32 layout=nt epilogue=none align=1";
  return Gemm::parse(key.str());
}

class AmdSmallValues : public testing::TestWithParam<const char*> {};

TEST_P(AmdSmallValues, AreMultipliedExactly) {
  const std::string arch = GetParam();
  int kernels = 0;
  for (const Template* source : templates())
    for (const auto& [a, b] : {std::pair(Type::e4m3, Type::e4m3), std::pair(Type::e5m2, Type::e5m2),
                               std::pair(Type::e4m3, Type::e5m2), std::pair(Type::e5m2, Type::e4m3)})
      for (const bool in_a : {true, false}) {
        const Gemm p = problem(a, b, in_a);
        if (!source->why_not(p, arch).empty()) continue;
        const std::optional<Config> config = cheapest(*source, p, generic_amd(*find_amd(arch)));
        if (!config) continue; // gemv needs more rows on some chips
        const Compiled c = compile(p, arch, {source->name(), *config});
        EveryValue values(c.kernel, in_a);
        try {
          values.run(c.ir);
          EXPECT_EQ(values.wrong(), "") << source->name() << " " << p.key();
        } catch (const ptx_sim::Fault& f) {
          ADD_FAILURE() << source->name() << " " << p.key() << ": " << f.what();
        }
        ++kernels;
      }
  EXPECT_GE(kernels, arch == "gfx906" ? 8 : 16); // simt, and one with matrix instructions
}
INSTANTIATE_TEST_SUITE_P(Chips, AmdSmallValues,
                         testing::Values("gfx906", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"),
                         [](const auto& info) { return std::string(info.param); });

} // namespace
} // namespace deepgen::amd_sim::small_values_test
