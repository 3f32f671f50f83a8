// From MLIR to PTX and a cubin, through compile_candidate().
#include "generator/compile.h"
#include "tests/unit/text_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deepgen {
namespace {

using testing::HasSubstr;
using testing::Not;

const Problem kProblem =
    Problem::parse("gemm m=8 n=8 k=8 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn epilogue=none align=4");

/// Every dialect that templates use: nvvm, llvm, arith, scf, vector, math.
constexpr const char* kCopy = R"(
llvm.mlir.global external @shared() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
llvm.func @deepgen_kernel(%a: !llvm.ptr<1>, %d: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 32>} {
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %i = arith.extsi %t : i32 to i64
  %pa = llvm.getelementptr %a[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
  %pd = llvm.getelementptr %d[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %s = llvm.mlir.addressof @shared : !llvm.ptr<3>
  %ps = llvm.getelementptr %s[%i] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f32
  %sum = scf.for %k = %c0 to %c8 step %c1 iter_args(%x = %zero) -> f32 : i32 {
    %v = llvm.load %pa : !llvm.ptr<1> -> f32
    %square = arith.mulf %v, %v : f32
    %y = arith.addf %x, %square : f32
    llvm.store %y, %ps : f32, !llvm.ptr<3>
    nvvm.barrier0
    scf.yield %y : f32
  }
  %r = math.fma %sum, %sum, %sum : f32
  llvm.store %r, %pd : f32, !llvm.ptr<1>
  llvm.return
})";

KernelFile compile(const TextTemplate& text, const std::string& arch) {
  use_only_template(&text);
  return compile_candidate(kProblem, arch, {"text", Config::parse("x=1")}, true, false);
}

TEST(Nvptx, EveryArchCompiles) {
  TextTemplate text;
  text.text = kCopy;
  for (const char* arch : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"}) {
    text.target = arch;
    const KernelFile file = compile(text, arch);
    ASSERT_EQ(file.status, "ok") << file.detail;
    const Kernel& kernel = *file.find("main");
    EXPECT_THAT(kernel.ptx, HasSubstr(std::string(".target ") + arch + "\n"));
    EXPECT_EQ(kernel.sha256.size(), 64u);
  }
}

} // namespace
} // namespace deepgen
