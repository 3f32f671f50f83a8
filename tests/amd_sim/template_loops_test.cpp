// The loops of mfma on the simulated device: tiles that are copied to LDS directly, waves that take turns.
// Sizes are ragged; a wait or a barrier that is left out must be found.
#include "base/amd.h"
#include "templates/template.h"
#include "tests/amd_sim/check.h"
#include "tests/amd_sim/compiled.h"
#include "tests/amd_sim/planted.h"

#include <gtest/gtest.h>

#include <regex>

namespace deepgen::amd_sim {
namespace {

struct Row {
  const char* arch;
  const char* types;
  const char* loop;
  const char* rest = "splits=1";
};

std::ostream& operator<<(std::ostream& out, const Row& r) {
  return out << r.arch << " " << r.types << " " << r.loop << " " << r.rest;
}

constexpr const char *kHalf = "a=f16 b=f16 d=f32 acc=f32", *kByte = "a=i8 b=i8 d=i32 acc=i32",
                     *kFp8 = "a=e4m3 b=e4m3 d=f32 acc=f32", *kDouble = "a=f64 b=f64 d=f64 acc=f64";

/// K has a part of a tile, of whole pieces of 16 bytes.
Problem ragged(const Row& r) {
  const std::string types = r.types;
  const std::string align = types == kHalf ? "2" : types == kDouble ? "8" : "1";
  return Problem::parse("gemm m=150 n=133 k=400 batch=2 " + types +
                        " layout=nt epilogue=none align=" + align);
}

Choice choice(const Row& r) {
  return {"mfma", Config::parse(std::string("wide=0 bm=128 bn=128 blocks=1 group=1 xcds=1 ") + r.loop + " " +
                                r.rest)};
}

Compiled compiled(const Row& r) { return compile(ragged(r), r.arch, choice(r)); }

class AmdTemplateLoops : public testing::TestWithParam<Row> {};

TEST_P(AmdTemplateLoops, AreRightAndReadFragmentsWithoutConflicts) {
  const Problem p = ragged(GetParam());
  const deepgen::Device device = generic_amd(*find_amd(GetParam().arch));
  ASSERT_EQ(find_template("mfma").why_illegal(p, device, choice(GetParam()).config), "");
  const Compiled c = compiled(GetParam());
  for (const cuda::CallCase& each : ptx_sim::chosen_cases(p, 1)) {
    const Outcome outcome = check_case(c.kernel, c.ir, each, 1);
    EXPECT_EQ(outcome.fault, "") << each.name;
    for (const LdsAccess& a : outcome.report.lds) {
      EXPECT_TRUE(a.write || a.conflict_factor == 1) << a.conflict_factor << ": " << a.instruction;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(
    Loops, AmdTemplateLoops,
    testing::Values(
        Row{"gfx950", kHalf, "size=32 bk=64 waves_m=2 waves_n=2 direct=1 stages=2 pingpong=0"},
        Row{"gfx950", kHalf, "size=16 bk=64 waves_m=2 waves_n=2 direct=1 stages=3 pingpong=0", "splits=3"},
        Row{"gfx950", kByte, "size=32 bk=128 waves_m=2 waves_n=4 direct=1 stages=2 pingpong=0"},
        Row{"gfx950", kFp8, "size=16 bk=64 waves_m=2 waves_n=4 direct=1 stages=3 pingpong=1"},
        Row{"gfx950", kDouble, "size=16 bk=128 waves_m=4 waves_n=2 direct=1 stages=2 pingpong=0", "splits=3"},
        Row{"gfx950", kHalf, "size=16 bk=128 waves_m=2 waves_n=4 direct=1 stages=3 pingpong=1"},
        Row{"gfx950", kHalf, "size=32 bk=128 waves_m=4 waves_n=2 direct=1 stages=2 pingpong=1"},
        Row{"gfx950", kHalf, "size=32 bk=128 waves_m=2 waves_n=4 direct=0 stages=2 pingpong=1"},
        Row{"gfx942", kHalf, "size=32 bk=64 waves_m=2 waves_n=4 direct=0 stages=2 pingpong=1", "splits=3"},
        Row{"gfx942", kFp8, "size=16 bk=128 waves_m=2 waves_n=4 direct=0 stages=2 pingpong=1"},
        Row{"gfx90a", kByte, "size=32 bk=128 waves_m=4 waves_n=2 direct=0 stages=2 pingpong=1"}));

/// K is whole tiles: none of them goes through registers.
Compiled without_rest(const Row& r) {
  const std::string key = std::regex_replace(ragged(r).key(), std::regex("k=400"), "k=384");
  return compile(Problem::parse(key), r.arch, choice(r));
}

const Row kDirect{"gfx950", kHalf, "size=32 bk=64 waves_m=2 waves_n=2 direct=1 stages=3 pingpong=0"};
const Row kDirectTurns{"gfx950", kHalf, "size=32 bk=128 waves_m=2 waves_n=4 direct=1 stages=3 pingpong=1"};
const Row kTurns{"gfx942", kHalf, "size=32 bk=64 waves_m=2 waves_n=4 direct=0 stages=2 pingpong=1"};

/// Ahead of the loop, in it, and ahead of the end, where another block would get the LDS.
TEST(AmdTemplateLoops, MissingWaitsForCopiesAreFound) {
  const std::string wait =
      R"((@llvm\.amdgcn\.s\.waitcnt\(i32 )(?!49279)\d+)"; // that one is for LDS accesses alone
  for (const Row& row : {kDirect, kDirectTurns})
    EXPECT_GE(plant(without_rest(row), wait, "$0149279"), 3) << row;
}

/// Those behind the loop only keep the groups of waves in step.
TEST(AmdTemplateLoops, MissingBarriersAreFound) {
  const std::string barrier = R"(.*call void @llvm\.amdgcn\.s\.barrier\(\).*\n)";
  EXPECT_EQ(plant_in_loop(without_rest(kDirect), barrier, ""), 1);
  EXPECT_EQ(plant_in_loop(without_rest(kTurns), barrier, ""), 2);
}

/// One tile too early, or to the neighbour's place.
TEST(AmdTemplateLoops, CopiesToWrongPlacesAreFound) {
  const std::string copy =
      R"(\n( *)(call void @llvm\.amdgcn\.global\.load\.lds\([^,]*, ptr addrspace\(3\) [^%]*)(%[^,]*),)";
  for (const Row& row : {kDirect, kDirectTurns})
    for (const char* bytes : {"16", "16384"})
      EXPECT_GE(plant_in_loop(without_rest(row), copy,
                              "\n$1%planted = getelementptr i8, ptr addrspace(3) $3, i32 " +
                                  std::string(bytes) + "\n$1$2%planted,"),
                2)
          << row;
}

} // namespace
} // namespace deepgen::amd_sim
