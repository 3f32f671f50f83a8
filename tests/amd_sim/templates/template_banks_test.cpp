// The bank conflicts that the simulated device counts in kernels of the templates on matrix units.
#include "tests/amd_sim/check/check.h"
#include "tests/amd_sim/check/compiled.h"

#include <gtest/gtest.h>

namespace deepgen::amd_sim::template_banks_test {
namespace {

struct Row {
  const char* arch;
  const char* types;
  const char* choice;
  const char* tile;
};

std::ostream& operator<<(std::ostream& out, const Row& r) {
  return out << r.arch << " " << r.types << " " << r.choice;
}

constexpr const char *kHalf = "a=f16 b=f16 d=f32 acc=f32", *kByte = "a=i8 b=i8 d=i32 acc=i32";
constexpr Row kRows[] = {
    {"gfx90a", kHalf, "mfma", "size=16 bk=64"},   {"gfx90a", kByte, "mfma", "size=32 bk=64"},
    {"gfx942", kHalf, "mfma", "size=16 bk=128"},  {"gfx942", kHalf, "mfma", "size=32 bk=64"},
    {"gfx950", kHalf, "mfma", "size=16 bk=64"},   {"gfx950", kByte, "mfma", "size=32 bk=128"},
    {"gfx1100", kHalf, "wmma", "size=16 bk=64"},  {"gfx1100", kByte, "wmma", "size=16 bk=128"},
    {"gfx1201", kHalf, "wmma", "size=16 bk=128"}, {"gfx1201", kByte, "wmma", "size=16 bk=64"}};

void expect_reads_without_conflicts(const Report& report) {
  int reads = 0;
  for (const LdsAccess& a : report.lds) {
    if (a.write) continue;
    ++reads;
    EXPECT_EQ(a.conflict_factor, 1) << a.instruction;
  }
  EXPECT_GE(reads, 4);
}

class AmdTemplateBanks : public testing::TestWithParam<Row> {};

TEST_P(AmdTemplateBanks, ReadsOfFragmentsDoNotConflict) {
  const Row& row = GetParam();
  const Gemm p =
      Gemm::parse("gemm m=64 n=64 k=256 batch=1 " + std::string(row.types) +
                  " layout=nt epilogue=none align=" + (std::string(row.types) == kHalf ? "2" : "1"));
  const Choice choice{
      row.choice,
      Config::parse(
          "wide=0 bm=64 bn=64 waves_m=2 waves_n=2 direct=0 buffer=0 stages=1 pingpong=0 blocks=1 splits=1 "
          "group=1 xcds=1 " +
          std::string(row.tile))};
  const Compiled c = compile(p, row.arch, choice);
  const Outcome outcome = check_case(c.kernel, c.ir, ptx_sim::chosen_cases(p, 1).front(), 1);
  EXPECT_EQ(outcome.fault, "");
  expect_reads_without_conflicts(outcome.report);
  for (const LdsAccess& a : outcome.report.lds) {
    if (a.write) continue;
    EXPECT_EQ(a.bytes, 16u) << a.instruction;
  }
}
INSTANTIATE_TEST_SUITE_P(Chips, AmdTemplateBanks, testing::ValuesIn(kRows));

/// simt's reads of 128 x 128 tiles, in which lanes of a row or column read the same words.
constexpr Row kThreadTiles[] = {{"gfx906", "a=f32 b=f32 d=f32 acc=f32", "simt", "align=4"},
                                {"gfx906", kHalf, "simt", "align=2"},
                                {"gfx906", kByte, "simt", "align=1"},
                                {"gfx942", kHalf, "simt", "align=2"},
                                {"gfx1100", "a=f32 b=f32 d=f32 acc=f32", "simt", "align=4"}};

class AmdThreadTileBanks : public testing::TestWithParam<Row> {};

TEST_P(AmdThreadTileBanks, ReadsDoNotConflict) {
  const Row& row = GetParam();
  const Gemm p = Gemm::parse("gemm m=128 n=128 k=64 batch=1 " + std::string(row.types) +
                             " layout=nt epilogue=none " + row.tile);
  const Choice choice{
      row.choice, Config::parse("wide=1 bm=128 bn=128 bk=8 tm=8 tn=8 stages=2 blocks=1 splits=1 group=4")};
  const Compiled c = compile(p, row.arch, choice);
  const Outcome outcome = check_case(c.kernel, c.ir, ptx_sim::chosen_cases(p, 1).front(), 1);
  EXPECT_EQ(outcome.fault, "");
  expect_reads_without_conflicts(outcome.report);
}
INSTANTIATE_TEST_SUITE_P(Chips, AmdThreadTileBanks, testing::ValuesIn(kThreadTiles));

} // namespace
} // namespace deepgen::amd_sim::template_banks_test
