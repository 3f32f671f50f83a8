// From MLIR to PTX and a cubin, through compile_candidate().
#include "generator/codegen/compile.h"
#include "generator/codegen/ptxas.h"
#include "tests/unit/environment.h"
#include "tests/unit/generator/codegen/text_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deepgen::nvptx_test {
namespace {

using testing::HasSubstr;
using testing::Not;

const Gemm kProblem =
    Gemm::parse("gemm m=8 n=8 k=8 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn epilogue=none align=4");

KernelFile compile(const TextTemplate& text, const std::string& arch) {
  use_only_template(&text);
  return compile_candidate(kProblem, arch, {"text", Config::parse("x=1")}, true, false);
}

/// A kernel with `body` between its parameters (%a, %d: pointers to global memory; %n: i32) and its return.
TextTemplate kernel_with(const std::string& body) {
  TextTemplate text;
  text.text = R"(
#disabled = #llvm.loop_unroll<disable = true>
#rolled = #llvm.loop_annotation<unroll = #disabled>
llvm.mlir.global external @shared() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
llvm.func @deepgen_kernel(%a: !llvm.ptr<1>, %d: !llvm.ptr<1>, %n: i32) attributes {nvvm.kernel,
    nvvm.reqntid = array<i32: 256, 1, 1>, nvvm.minctasm = 1 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
)" + body + "  llvm.return\n}";
  return text;
}

std::string ptx_of(const TextTemplate& text, const std::string& arch = "sm_80") {
  use_only_template(&text);
  return dump_stage(kProblem, arch, {"text", Config::parse("x=1")}, "ptx");
}

/// Every dialect that templates use: nvvm, llvm, arith, scf, vector, math.
constexpr const char* kSquares = R"(
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %i = arith.extsi %t : i32 to i64
  %pa = llvm.getelementptr %a[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, vector<4xf32>
  %pd = llvm.getelementptr %d[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
  %s = llvm.mlir.addressof @shared : !llvm.ptr<3>
  %ps = llvm.getelementptr %s[%i] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, f32
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%x = %zero) -> f32 : i32 {
    %v = llvm.load %pa {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
    %first = vector.extract %v[0] : f32 from vector<4xf32>
    %square = arith.mulf %first, %first : f32
    %y = arith.addf %x, %square : f32
    llvm.store %y, %ps : f32, !llvm.ptr<3>
    nvvm.barrier0
    scf.yield %y : f32
  } {loop_annotation = #rolled}
  %r = math.fma %sum, %sum, %sum : f32
  llvm.store %r, %pd : f32, !llvm.ptr<1>
)";

TEST(Nvptx, EveryArchCompiles) {
  TextTemplate text = kernel_with(kSquares);
  for (const char* arch : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"}) {
    text.target = arch;
    const KernelFile file = compile(text, arch);
    ASSERT_EQ(file.status, "ok") << file.detail;
    ASSERT_EQ(file.kernels.size(), 2u);
    for (const Kernel& kernel : file.kernels) {
      EXPECT_THAT(kernel.ptx, HasSubstr(std::string(".target ") + arch + "\n"));
      EXPECT_EQ(kernel.sha256.size(), 64u);
      EXPECT_EQ(kernel.code.empty(), kernel.assembler.empty());
      EXPECT_EQ(kernel.assembler, ptxas_version());
      EXPECT_EQ(kernel.launches[0].registers > 0, !kernel.code.empty());
    }
  }
}

TEST(Nvptx, FloatsAreContractedOnlyWhereTheIrSaysSo) {
  const std::string ptx = ptx_of(kernel_with(R"(
  %x = llvm.load %a : !llvm.ptr<1> -> f32
  %strict = arith.mulf %x, %x : f32
  %sum = arith.addf %strict, %x : f32
  llvm.store %sum, %a : f32, !llvm.ptr<1>
  %free = llvm.fmul %sum, %x {fastmathFlags = #llvm.fastmath<contract>} : f32
  %fused = llvm.fadd %free, %sum {fastmathFlags = #llvm.fastmath<contract>} : f32
  llvm.store %fused, %d : f32, !llvm.ptr<1>
)"));
  EXPECT_THAT(ptx, HasSubstr("mul.rn.f32")) << "without .rn ptxas would contract it";
  EXPECT_THAT(ptx, HasSubstr("add.rn.f32"));
  EXPECT_THAT(ptx, HasSubstr("fma.rn.f32"));
  EXPECT_THAT(ptx, Not(HasSubstr(".ftz")));
}

TEST(Nvptx, LoopsStayAsTheTemplateWroteThem) {
  const std::string ptx = ptx_of(kernel_with(kSquares));
  EXPECT_THAT(ptx, HasSubstr(".pragma \"nounroll\""));
  EXPECT_EQ(ptx.find("bar.sync"), ptx.rfind("bar.sync")) << "unrolled or peeled";
}

TEST(Nvptx, TensorMapsAreReadInPlace) {
  TextTemplate text;
  text.target = "sm_90a";
  text.text = R"(
llvm.func @deepgen_kernel(%map: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant, llvm.align = 64 : i32},
    %d: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %x = llvm.load %map : !llvm.ptr -> i32
  llvm.store %x, %d : i32, !llvm.ptr<1>
  llvm.return
})";
  const std::string ptx = ptx_of(text, "sm_90a");
  EXPECT_THAT(ptx, HasSubstr(".param .align 64 .b8 deepgen_kernel_param_0[128]"));
  EXPECT_THAT(ptx, Not(HasSubstr(".local"))) << "copied to local memory";
}

TEST(Nvptx, TheLowestIsaVersionThatWillDo) {
  TextTemplate text = kernel_with("");
  const std::pair<const char*, const char*> expected[] = {
      {"sm_80", "8.0"}, {"sm_89", "8.0"}, {"sm_90a", "8.0"}, {"sm_100", "8.6"}, {"sm_120", "8.7"}};
  for (auto [arch, version] : expected) {
    text.target = arch;
    EXPECT_THAT(ptx_of(text, arch), HasSubstr(std::string(".version ") + version + "\n"));
  }
  text = kernel_with(R"(
  %f = arith.constant 0.0 : f32
  %r = llvm.call_intrinsic "llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e4m3.f32"(%n, %n, %n, %n, %n, %n, %f, %f, %f, %f)
      : (i32, i32, i32, i32, i32, i32, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
  %x = llvm.extractvalue %r[0] : !llvm.struct<(f32, f32, f32, f32)>
  llvm.store %x, %d : f32, !llvm.ptr<1>
)");
  text.target = "sm_89";
  EXPECT_THAT(ptx_of(text, "sm_89"), HasSubstr(".version 8.4\n"));
  EXPECT_EQ(compile(text, "sm_89").status, "ok");
}

TEST(Nvptx, WithoutPtxasThePtxIsTheKernel) {
  const TextTemplate text = kernel_with(kSquares);
  const Environment none("DEEPGEN_PTXAS", "none");
  const KernelFile file = compile(text, "sm_80");
  ASSERT_EQ(file.status, "ok") << file.detail;
  EXPECT_EQ(file.kernels[0].code, "");
  EXPECT_EQ(file.kernels[0].assembler, "");
  EXPECT_EQ(file.kernels[0].sha256.size(), 64u);
  EXPECT_THAT(toolchain("sm_80"), HasSubstr("without ptxas"));
  EXPECT_THAT(toolchain("cpu"), Not(HasSubstr("ptxas")));
}

TEST(Nvptx, AMissingEntryIsNamed) {
  TextTemplate text = kernel_with(kSquares);
  text.entries.push_back("deepgen_reduce");
  const KernelFile file = compile(text, "sm_80");
  EXPECT_EQ(file.status, "failed");
  EXPECT_THAT(file.detail, HasSubstr("deepgen_reduce"));
}

/// 128 values live across a barrier, in at most 32 registers.
TextTemplate spilling() {
  TextTemplate text = kernel_with("");
  std::string body = R"(
llvm.func @deepgen_kernel(%a: !llvm.ptr<1>, %d: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.maxnreg = 32 : i32} {
)";
  auto element = [&](const char* base, int i) {
    const std::string n = std::to_string(i), name = "%" + std::string(base) + n;
    body += name + " = llvm.getelementptr %" + base + "[" + n + "] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32\n";
    return name;
  };
  for (int i = 0; i < 128; ++i) {
    const std::string p = element("a", i);
    body += "%v" + std::to_string(i) + " = llvm.load volatile " + p + " : !llvm.ptr<1> -> f32\n";
  }
  body += "nvvm.barrier0\n";
  for (int i = 0; i < 128; ++i) {
    const std::string p = element("d", i);
    body += "llvm.store volatile %v" + std::to_string(i) + ", " + p + " : f32, !llvm.ptr<1>\n";
  }
  text.text = body + "llvm.return\n}";
  return text;
}

class NeedsPtxas : public testing::Test {
protected:
  void SetUp() override {
    if (find_ptxas().empty()) GTEST_SKIP() << "no ptxas";
  }
};
using NvptxAssembled = NeedsPtxas;

TEST_F(NvptxAssembled, ASpillingCandidateFails) {
  const TextTemplate text = spilling();
  const KernelFile file = compile(text, "sm_80");
  EXPECT_EQ(file.status, "failed");
  EXPECT_THAT(file.detail,
              testing::ContainsRegex("rejected: deepgen_kernel uses 32 registers.*bytes of spill"));
  EXPECT_EQ(compile_candidate(kProblem, "sm_80", {"text", Config::parse("x=1")}, false, false, false).status,
            "ok");
  EXPECT_TRUE(file.kernels.empty());
}

TEST_F(NvptxAssembled, SameBytesTwice) {
  const TextTemplate text = kernel_with(kSquares);
  EXPECT_EQ(compile(text, "sm_80").serialize(), compile(text, "sm_80").serialize());
}

} // namespace
} // namespace deepgen::nvptx_test
