// The loops of mfma on the simulated device: tiles that are copied to LDS directly, waves that take turns.
// Sizes are ragged; a wait or a barrier that is left out must be found.
#include "base/kernel/amd.h"
#include "templates/core/template.h"
#include "tests/amd_sim/check/check.h"
#include "tests/amd_sim/check/compiled.h"
#include "tests/amd_sim/templates/planted.h"

#include <gtest/gtest.h>

#include <regex>
#include <tuple>

namespace deepgen::amd_sim::template_loops_test {
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
Gemm ragged(const Row& r) {
  const std::string types = r.types;
  const std::string align = types == kHalf ? "2" : types == kDouble ? "8" : "1";
  return Gemm::parse("gemm m=150 n=133 k=400 batch=2 " + types + " layout=nt epilogue=none align=" + align);
}

Choice choice(const Row& r) {
  return {"mfma", Config::parse(std::string("wide=0 bm=128 bn=128 blocks=1 group=1 xcds=1 ") + r.loop + " " +
                                r.rest)};
}

Compiled compiled(const Row& r) { return compile(ragged(r), r.arch, choice(r)); }

class AmdTemplateLoops : public testing::TestWithParam<Row> {};

TEST_P(AmdTemplateLoops, AreRightAndReadFragmentsWithoutConflicts) {
  const Gemm p = ragged(GetParam());
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
        Row{"gfx950", kHalf, "size=32 bk=64 waves_m=2 waves_n=2 direct=1 buffer=0 stages=2 pingpong=0"},
        Row{"gfx950", kHalf, "size=16 bk=64 waves_m=2 waves_n=2 direct=1 buffer=0 stages=3 pingpong=0",
            "splits=3"},
        Row{"gfx950", kByte, "size=32 bk=128 waves_m=2 waves_n=4 direct=1 buffer=0 stages=2 pingpong=0"},
        Row{"gfx950", kFp8, "size=16 bk=64 waves_m=2 waves_n=4 direct=1 buffer=0 stages=3 pingpong=1"},
        Row{"gfx950", kDouble, "size=16 bk=128 waves_m=4 waves_n=2 direct=1 buffer=0 stages=2 pingpong=0",
            "splits=3"},
        Row{"gfx950", kHalf, "size=16 bk=128 waves_m=2 waves_n=4 direct=1 buffer=0 stages=3 pingpong=1"},
        Row{"gfx950", kHalf, "size=32 bk=128 waves_m=4 waves_n=2 direct=1 buffer=0 stages=2 pingpong=1"},
        Row{"gfx950", kHalf, "size=32 bk=128 waves_m=2 waves_n=4 direct=0 buffer=0 stages=2 pingpong=1"},
        Row{"gfx942", kHalf, "size=32 bk=64 waves_m=2 waves_n=4 direct=0 buffer=0 stages=2 pingpong=1",
            "splits=3"},
        Row{"gfx942", kFp8, "size=16 bk=128 waves_m=2 waves_n=4 direct=0 buffer=0 stages=2 pingpong=1"},
        Row{"gfx90a", kByte, "size=32 bk=128 waves_m=4 waves_n=2 direct=0 buffer=0 stages=2 pingpong=1"},
        Row{"gfx950", kHalf, "size=32 bk=64 waves_m=2 waves_n=2 direct=1 buffer=1 stages=3 pingpong=0"},
        Row{"gfx942", kHalf, "size=32 bk=64 waves_m=2 waves_n=2 direct=1 buffer=0 stages=2 pingpong=0"},
        Row{"gfx942", kHalf, "size=16 bk=64 waves_m=2 waves_n=4 direct=1 buffer=1 stages=3 pingpong=1"},
        Row{"gfx90a", kByte, "size=16 bk=128 waves_m=2 waves_n=2 direct=1 buffer=1 stages=2 pingpong=0",
            "splits=1"},
        Row{"gfx942", kHalf, "size=32 bk=64 waves_m=2 waves_n=2 direct=0 buffer=1 stages=3 pingpong=0"},
        Row{"gfx942", kByte, "size=16 bk=64 waves_m=2 waves_n=4 direct=0 buffer=1 stages=3 pingpong=1"},
        Row{"gfx90a", kDouble, "size=16 bk=64 waves_m=4 waves_n=2 direct=0 buffer=1 stages=3 pingpong=0",
            "splits=3"}));

/// K is whole tiles: none of them goes through registers.
Compiled without_rest(const Row& r) {
  const std::string key = std::regex_replace(ragged(r).key(), std::regex("k=400"), "k=384");
  return compile(Gemm::parse(key), r.arch, choice(r));
}

const Row kDirect{"gfx950", kHalf, "size=32 bk=64 waves_m=2 waves_n=2 direct=1 buffer=0 stages=3 pingpong=0"};
const Row kDirectTurns{"gfx950", kHalf,
                       "size=32 bk=128 waves_m=2 waves_n=4 direct=1 buffer=0 stages=3 pingpong=1"};
/// By 4 bytes a lane.
const Row kDirectWords{"gfx942", kHalf,
                       "size=32 bk=64 waves_m=2 waves_n=2 direct=1 buffer=1 stages=2 pingpong=0"};
const Row kThreeStages{"gfx942", kHalf,
                       "size=32 bk=64 waves_m=2 waves_n=2 direct=0 buffer=1 stages=3 pingpong=0"};
const Row kTurns{"gfx942", kHalf, "size=32 bk=64 waves_m=2 waves_n=4 direct=0 buffer=0 stages=2 pingpong=1"};

/// Ahead of the loop, in it, and ahead of the end, where another block would get the LDS.
TEST(AmdTemplateLoops, MissingWaitsForCopiesAreFound) {
  const std::string wait =
      R"((@llvm\.amdgcn\.s\.waitcnt\(i32 )(?!49279)\d+)"; // that one is for LDS accesses alone
  for (const Row& row : {kDirect, kDirectTurns, kDirectWords})
    EXPECT_GE(plant(without_rest(row), wait, "$0149279"), 3) << row;
}

/// Those behind the loop only keep the groups of waves in step.
TEST(AmdTemplateLoops, MissingBarriersAreFound) {
  const std::string barrier = R"(.*call void @llvm\.amdgcn\.s\.barrier\(\).*\n)";
  EXPECT_EQ(plant_in_loop(without_rest(kDirect), barrier, ""), 1);
  EXPECT_EQ(plant_in_loop(without_rest(kThreeStages), barrier, ""), 1);
  EXPECT_EQ(plant_in_loop(without_rest(kTurns), barrier, ""), 2);
}

/// One tile too early, or to the neighbour's place.
TEST(AmdTemplateLoops, CopiesToWrongPlacesAreFound) {
  const std::string copy =
      R"(\n( *)(call void @llvm\.amdgcn\.[a-z.]*load\.lds[^,]*, ptr addrspace\(3\) [^%]*)(%[^,]*),)";
  for (const Row& row : {kDirect, kDirectTurns, kDirectWords})
    for (const char* bytes : {"16", "16384"})
      EXPECT_GE(plant_in_loop(without_rest(row), copy,
                              "\n$1%planted = getelementptr i8, ptr addrspace(3) $3, i32 " +
                                  std::string(bytes) + "\n$1$2%planted,"),
                2)
          << row;
}

/// In the first layout the range of a buffer is what ends at the last row; in both, offsets beyond it what
/// ends at K. One operand's zeros there are enough, so that all are taken away at once.
TEST(AmdTemplateLoops, WrongBuffersAreFound) {
  for (const char* layout : {"layout=nt", "layout=tn"}) {
    std::string key = std::regex_replace(ragged(kThreeStages).key(), std::regex("layout=nt"), layout);
    key = std::regex_replace(key, std::regex("m=150 n=133"), "m=140 n=136");
    const Compiled c = compile(Gemm::parse(key), kThreeStages.arch, choice(kThreeStages));
    EXPECT_EQ(first_fault(c), "") << layout;
    auto fault_with = [&](const std::string& pattern, const std::string& by,
                          std::regex_constants::match_flag_type how = std::regex_constants::format_default) {
      Compiled wrong = c;
      wrong.ir = std::regex_replace(c.ir, std::regex(pattern), by, how);
      EXPECT_NE(wrong.ir, c.ir) << pattern;
      return first_fault(wrong);
    };
    EXPECT_NE(fault_with("i32 -2147483648", "i32 0").find("expected"), std::string::npos) << layout;
    if (key.find("layout=nt") == std::string::npos) continue;
    const std::string range = R"((@llvm\.amdgcn\.make\.buffer\.rsrc[^,]*, i16 0, i64 )([^,]*),)";
    EXPECT_EQ(plant(c, range, "$012147483647,"), 2);
    const std::string offset =
        R"(\n( *)(%\d+ = [a-z ]*call <4 x i32> @llvm\.amdgcn\.raw\.ptr\.buffer\.load[^,]*, i32 )(%[^,]*),)";
    EXPECT_NE(fault_with(offset, "\n$1%planted = add i32 $3, 2\n$1$2%planted,",
                         std::regex_constants::format_first_only)
                  .find("aligned to less than 4"),
              std::string::npos);
  }
}

/// Offsets stay below 2^31: for longer rows there is the fallback, and where dense ones are longer, no such
/// config.
TEST(AmdTemplateLoops, BuffersReachRowsThatAreNotTooLong) {
  const deepgen::Device device = generic_amd(*find_amd(kThreeStages.arch));
  const Template& mfma = find_template("mfma");
  const Config config = choice(kThreeStages).config;
  const auto fallbacks = mfma.fallbacks(ragged(kThreeStages), kThreeStages.arch, config);
  ASSERT_EQ(fallbacks.size(), 1u);
  const Compiled c = compiled(kThreeStages);
  EXPECT_EQ(compile(ragged(kThreeStages), kThreeStages.arch, fallbacks[0]).kernel.most_pitch, 0);
  EXPECT_EQ(c.kernel.most_pitch, (0x7fffffff - 400 * 2) / 128);
  KernelFile file;
  file.problem = c.kernel.problem, file.arch = kThreeStages.arch, file.choice = choice(kThreeStages);
  file.kernels = {c.kernel};
  EXPECT_EQ(KernelFile::parse(file.serialize(), "here").kernels.at(0).most_pitch, c.kernel.most_pitch);
  for (auto [sizes, layout, reached] :
       {std::tuple{"m=65536 n=65536 k=65536", "nt", true}, std::tuple{"m=65536 n=65536 k=65536", "tn", false},
        std::tuple{"m=4096 n=4096 k=16777216", "nt", false}}) {
    const Gemm p = Gemm::parse("gemm " + std::string(sizes) + " batch=1 " + kHalf + " layout=" + layout +
                               " epilogue=none align=2");
    EXPECT_EQ(mfma.why_illegal(p, device, config).find("offsets of 32 bits") == std::string::npos, reached)
        << sizes << " " << layout;
  }
}

} // namespace
} // namespace deepgen::amd_sim::template_loops_test
