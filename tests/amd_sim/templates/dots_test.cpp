// simt's dot products (two f16 or bf16, four i8 along K an instruction) on the simulated device: each layout,
// and K that ends within a dot product, within a tile, or within a split.
#include "tests/amd_sim/check/check.h"
#include "tests/amd_sim/check/compiled.h"

#include <gtest/gtest.h>

namespace deepgen::amd_sim::dots_test {
namespace {

struct Row {
  const char* arch;
  const char* type;
  const char* instruction; ///< that must be there
};

std::ostream& operator<<(std::ostream& out, const Row& r) { return out << r.arch << " " << r.type; }

constexpr const char *kPairs = "@llvm.amdgcn.fdot2(", *kBf16Pairs = "@llvm.amdgcn.fdot2.f32.bf16(";
constexpr Row kRows[] = {{"gfx906", "f16", kPairs},       {"gfx906", "i8", "@llvm.amdgcn.sdot4("},
                         {"gfx942", "f16", kPairs},       {"gfx950", "bf16", kBf16Pairs},
                         {"gfx1100", "bf16", kBf16Pairs}, {"gfx1100", "i8", "@llvm.amdgcn.sudot4("},
                         {"gfx1201", "f16", kPairs}};

Gemm problem(const std::string& type, const std::string& sizes, const std::string& layout) {
  const bool bytes = type == "i8";
  return Gemm::parse("gemm " + sizes + " a=" + type + " b=" + type +
                     (bytes ? " d=i32 acc=i32" : " d=f32 acc=f32") + " layout=" + layout +
                     " epilogue=none align=" + (bytes ? "1" : "2"));
}

class AmdDots : public testing::TestWithParam<Row> {
protected:
  void check(const std::string& sizes, const std::string& layout, const std::string& config) {
    const Row& row = GetParam();
    const Gemm p = problem(row.type, sizes, layout);
    const Compiled c = compile(p, row.arch, {"simt", Config::parse(config)});
    EXPECT_NE(c.ir.find(row.instruction), std::string::npos);
    for (const cuda::CallCase& each : ptx_sim::chosen_cases(p, 5))
      EXPECT_EQ(check_case(c.kernel, c.ir, each, 5).fault, "")
          << p.key() << " " << config << ", " << each.name;
  }
};

constexpr const char* kTile = " bm=32 bn=64 bk=8 tm=4 tn=4 stages=2 blocks=1 group=1";

TEST_P(AmdDots, AreRightInEachLayout) {
  for (const char* layout : {"nn", "nt", "tn", "tt"}) {
    check("m=40 n=72 k=80 batch=1", layout, std::string("wide=1 splits=1") + kTile);
    check("m=40 n=72 k=79 batch=1", layout, std::string("wide=0 splits=1") + kTile);
  }
}

/// 77 elements: 19 dot products of four and one of one, 38 of two and one of one.
TEST_P(AmdDots, EndWithinADotProduct) {
  check("m=40 n=72 k=77 batch=2", "tn", std::string("wide=1 splits=1") + kTile);
  check("m=40 n=72 k=301 batch=1", "tn", std::string("wide=1 splits=2") + kTile);
  check("m=40 n=72 k=302 batch=1", "nn", std::string("wide=1 splits=2") + kTile);
  check("m=40 n=72 k=1 batch=1", "nt", std::string("wide=0 splits=1") + kTile);
}
INSTANTIATE_TEST_SUITE_P(Chips, AmdDots, testing::ValuesIn(kRows));

TEST(AmdDots, OtherChipsMultiplyBf16AsF32) {
  for (const char* arch : {"gfx906", "gfx90a", "gfx942"}) {
    const Compiled c = compile(problem("bf16", "m=64 n=64 k=64 batch=1", "nt"), arch,
                               {"simt", Config::parse(std::string("wide=1 splits=1") + kTile)});
    EXPECT_EQ(c.ir.find("dot2"), std::string::npos) << arch;
    EXPECT_NE(c.ir.find("@llvm.fma.f32("), std::string::npos) << arch;
  }
}

} // namespace
} // namespace deepgen::amd_sim::dots_test
