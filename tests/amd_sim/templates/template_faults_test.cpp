// Faults planted in the LLVM IR of templates' kernels: the simulator must find each of them.
#include "tests/amd_sim/check/check.h"
#include "tests/amd_sim/check/compiled.h"
#include "tests/amd_sim/templates/planted.h"

#include <gtest/gtest.h>

namespace deepgen::amd_sim::template_faults_test {
namespace {

Compiled matrix_kernel(const std::string& arch, const std::string& name) {
  return compile(
      Gemm::parse("gemm m=84 n=72 k=248 batch=1 a=f16 b=f16 d=f32 acc=f32 layout=nt epilogue=bias align=2"),
      arch,
      {name, Config::parse("wide=0 size=16 bm=64 bn=32 bk=128 waves_m=2 waves_n=2 direct=0 buffer=0 stages=1 "
                           "pingpong=0 blocks=1 splits=1 "
                           "group=1 xcds=1")});
}
Compiled mfma_kernel() { return matrix_kernel("gfx942", "mfma"); }
Compiled wmma_kernel(const std::string& arch) { return matrix_kernel(arch, "wmma"); }
Compiled simt_kernel(const std::string& arch) {
  return compile(
      Gemm::parse("gemm m=70 n=50 k=61 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=none align=4"),
      arch, {"simt", Config::parse("wide=0 bm=64 bn=32 bk=8 tm=4 tn=4 stages=2 blocks=2 splits=1 group=1")});
}

/// Pairs along K, put together from two rows; K ends within one.
Compiled dot_kernel() {
  return compile(
      Gemm::parse("gemm m=24 n=48 k=37 batch=1 a=f16 b=f16 d=f32 acc=f32 layout=tn epilogue=none align=2"),
      "gfx906",
      {"simt", Config::parse("wide=1 bm=16 bn=32 bk=8 tm=1 tn=4 stages=2 blocks=2 splits=1 group=1")});
}

/// Eight vectors, so that lanes exchange halves of their sums.
Compiled gemv_kernel(const std::string& arch) {
  return compile(
      Gemm::parse("gemm m=8 n=70 k=1096 batch=1 a=f16 b=f16 d=f32 acc=f32 layout=nt epilogue=bias align=2"),
      arch,
      {"gemv",
       Config::parse("form=0 vec=16 width=2 rwarps=2 kwarps=2 unroll=1 splits=1 hint=1 pipe=1 pdl=0")});
}

TEST(AmdTemplateFaults, KernelsAreRightWithoutThem) {
  for (const Compiled& c :
       {gemv_kernel("gfx906"), gemv_kernel("gfx1100"), mfma_kernel(), wmma_kernel("gfx1100"),
        wmma_kernel("gfx1201"), simt_kernel("gfx90a"), simt_kernel("gfx1100"), dot_kernel()})
    EXPECT_EQ(first_fault(c), "") << c.kernel.choice.text();
}

TEST(AmdTemplateFaults, WrongShufflesAreFound) {
  const std::string lanes = R"((@llvm\.amdgcn\.ds\.swizzle\(i32 [^,]*, i32 )(\d+))";
  for (const Compiled& c : {gemv_kernel("gfx906"), gemv_kernel("gfx1100")})
    EXPECT_GE(plant(c, lanes, "$0131"), 5) << c.kernel.choice.text(); // as $01 and 31: no exchange
}

TEST(AmdTemplateFaults, MissingBarriersAreFound) {
  const std::string barrier = R"(.*call void @llvm\.amdgcn\.s\.barrier\(\).*\n)";
  for (const Compiled& c : {mfma_kernel(), wmma_kernel("gfx1100"), wmma_kernel("gfx1201"),
                            gemv_kernel("gfx906"), simt_kernel("gfx90a"), simt_kernel("gfx1100")})
    EXPECT_GE(plant(c, barrier, ""), 1) << c.kernel.choice.text();
}

TEST(AmdTemplateFaults, MissingWaitsAreFound) {
  const std::string release = R"(.*fence syncscope\("workgroup"\) release.*\n)";
  for (const Compiled& c :
       {mfma_kernel(), wmma_kernel("gfx1201"), gemv_kernel("gfx1100"), simt_kernel("gfx1100")})
    EXPECT_GE(plant(c, release, ""), 1) << c.kernel.choice.text();
}

TEST(AmdTemplateFaults, WrongLayoutsAreFound) {
  const std::string operands = R"((@llvm\.amdgcn\.(?:mfma|wmma)[^(]*\(<[^>]*> )([^,]*)(, <[^>]*> )([^,]*),)";
  for (const Compiled& c : {mfma_kernel(), wmma_kernel("gfx1100"), wmma_kernel("gfx1201")})
    EXPECT_GE(plant(c, operands, "$1$4$3$2,"), 1) << c.kernel.choice.text();
}

/// One of a dot product's operands is the other one, too.
TEST(AmdTemplateFaults, WrongPairsAreFound) {
  const std::string operands = R"((@llvm\.amdgcn\.fdot2\(<2 x half> )([^,]*)(, <2 x half> )([^,]*),)";
  EXPECT_GE(plant(dot_kernel(), operands, "$1$2$3$2,"), 8);
}

/// Accesses of one kind, each by 16 bytes too far.
int shift(const Compiled& c, const std::string& access, const std::string& space) {
  return plant(c, "\n( *)(" + access + R"([^\n]*, ptr addrspace\()" + space + R"(\) )(%[^,]*),)",
               "\n$1%planted = getelementptr i8, ptr addrspace(" + space + ") $3, i32 16\n$1$2%planted,");
}

TEST(AmdTemplateFaults, ShiftedAddressesAreFound) {
  for (const Compiled& c : {mfma_kernel(), wmma_kernel("gfx1100"), simt_kernel("gfx1100"), dot_kernel()}) {
    EXPECT_GE(shift(c, R"(%\d+ = load)", "1"), 1) << c.kernel.choice.text();
    EXPECT_GE(shift(c, "store", "1"), 1) << c.kernel.choice.text();
    EXPECT_GE(shift(c, R"(%\d+ = load)", "3"), 1) << c.kernel.choice.text();
    EXPECT_GE(shift(c, "store", "3"), 1) << c.kernel.choice.text();
  }
}

} // namespace
} // namespace deepgen::amd_sim::template_faults_test
