// From MLIR to an AMD code object, through compile_candidate().
#include "base/kernel/amd.h"
#include "base/kernel/device.h"
#include "base/text/error.h"
#include "generator/codegen/amdgpu.h"
#include "generator/codegen/compile.h"
#include "generator/space/space.h"
#include "tests/unit/environment.h"
#include "tests/unit/generator/codegen/text_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deepgen::amdgpu_test {
namespace {

using testing::HasSubstr;

const Gemm kProblem =
    Gemm::parse("gemm m=512 n=512 k=512 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=gelu align=4");
constexpr const char* kArchs[] = {"gfx906", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"};

KernelFile compile_default(const Gemm& problem, const std::string& arch) {
  return compile_candidate(problem, arch, Space(problem, arch, generic_gpu(arch)).default_choice(), true,
                           true);
}

/// A kernel with `body` between its parameters (%a, %d: pointers to global memory; %n: i32) and its return.
KernelFile compile(const std::string& body, const std::vector<std::string>& entries = {kernel_symbol}) {
  static TextTemplate text; // stays registered
  text.target = "gfx942", text.entries = entries;
  text.text = R"(
llvm.func @deepgen_kernel(%a: !llvm.ptr<1>, %d: !llvm.ptr<1>, %n: i32) attributes {rocdl.kernel,
    rocdl.flat_work_group_size = "256,256"} {
)" + body + "  llvm.return\n}";
  register_template(&text);
  return compile_candidate(kProblem, "gfx942", {"text", Config::parse("x=1")}, false, false);
}

TEST(Amdgpu, EveryArchCompiles) {
  for (const char* arch : kArchs) {
    const KernelFile file = compile_default(kProblem, arch);
    ASSERT_EQ(file.status, "ok") << arch << ": " << file.detail;
    ASSERT_TRUE(file.find("main") && file.find("awkward"));
    for (const Kernel& kernel : file.kernels) {
      EXPECT_EQ(kernel.code.substr(0, 4), "\177ELF");
      EXPECT_EQ(kernel.code[7], 64) << "ELFOSABI_AMDGPU_HSA";
      EXPECT_EQ(kernel.code[8], 2) << "code object version 4";
      EXPECT_EQ(kernel.target, arch);
      EXPECT_TRUE(kernel.ptx.empty());
      EXPECT_THAT(kernel.assembler, HasSubstr("LLD 22."));
      EXPECT_EQ(kernel.sha256.size(), 64u);
      const Launch& launch = kernel.launches[0];
      EXPECT_GT(launch.registers, 8);
      EXPECT_GT(launch.scalars, 8);
      EXPECT_GT(launch.static_shared, 1024);
      EXPECT_EQ(launch.shared, 0);
      EXPECT_EQ(launch.stack + launch.spill_stores + launch.spill_loads, 0);
      EXPECT_EQ(launch.waves, find_amd(arch)->waves(launch.registers, launch.static_shared, launch.block[0]));
      EXPECT_GT(launch.waves, 0);
    }
  }
}

TEST(Amdgpu, TheSameBytesEachTime) {
  const KernelFile first = compile_default(kProblem, "gfx942");
  EXPECT_EQ(first.serialize(), compile_default(kProblem, "gfx942").serialize());
  const KernelFile read = KernelFile::parse(first.serialize(), "here");
  EXPECT_EQ(read.serialize(), first.serialize());
  EXPECT_EQ(read.kernels[0].launches, first.kernels[0].launches) << "with what only AMD's have";
}

TEST(Amdgpu, CodeObjectVersions) {
  for (auto [version, abi] : {std::pair{"5", 3}, {"6", 4}}) {
    const Environment set("DEEPGEN_AMD_CODE_OBJECT", version);
    const KernelFile file = compile("");
    ASSERT_EQ(file.status, "ok") << file.detail;
    EXPECT_EQ(file.kernels[0].code[8], abi);
    EXPECT_THAT(toolchain("gfx942"), HasSubstr(std::string("code object ") + version));
  }
  const Environment set("DEEPGEN_AMD_CODE_OBJECT", "3");
  EXPECT_THAT(compile("").detail, HasSubstr("use 4, 5 or 6"));
}

/// Registers that do not suffice go to scratch memory, and so does an array that is indexed at run time.
TEST(Amdgpu, ScratchMemoryIsRejected) {
  const std::string body = R"(
  %count = llvm.mlir.constant(64 : i32) : i32
  %array = llvm.alloca %count x i32 {alignment = 4 : i64} : (i32) -> !llvm.ptr<5>
  %to = llvm.getelementptr %array[%n] : (!llvm.ptr<5>, i32) -> !llvm.ptr<5>, i32
  llvm.store volatile %n, %to : i32, !llvm.ptr<5>
)";
  const KernelFile file = compile(body);
  EXPECT_EQ(file.status, "failed");
  EXPECT_EQ(file.detail.rfind(kRejected, 0), 0u) << file.detail;
  EXPECT_THAT(file.detail, HasSubstr("bytes of scratch"));
}

TEST(Amdgpu, EveryEntryMustBeThere) {
  const KernelFile file = compile("", {kernel_symbol, "deepgen_reduce"});
  EXPECT_EQ(file.status, "failed");
  EXPECT_THAT(file.detail, HasSubstr("did not define the entry deepgen_reduce"));
}

TEST(Amdgpu, WithoutLldItSaysWhatIsMissing) {
  const Environment set("DEEPGEN_LLD", "/no/such/program");
  try {
    compile("");
    FAIL() << "a host without lld is no candidate's failure";
  } catch (const HostFault& fault) {
    EXPECT_THAT(fault.what(), HasSubstr("DEEPGEN_LLD"));
  }
}

/// What `llc` says about the same registers and LDS (its comment "Occupancy"), with 256 threads.
TEST(Amdgpu, Occupancy) {
  const AmdArch& gfx906 = *find_amd("gfx906");
  EXPECT_EQ(gfx906.waves(128, 0, 256), 2);
  EXPECT_EQ(gfx906.waves(129, 0, 256), 1);
  EXPECT_EQ(gfx906.waves(24, 0, 256), 10);
  const AmdArch& gfx942 = *find_amd("gfx942");
  EXPECT_EQ(gfx942.waves(128, 0, 256), 4);
  EXPECT_EQ(gfx942.waves(129, 0, 256), 3);
  EXPECT_EQ(gfx942.waves(256, 0, 512), 2);
  EXPECT_EQ(gfx942.waves(257, 0, 512), 0) << "eight waves need two on each SIMD";
  EXPECT_EQ(gfx942.waves(64, 33 << 10, 256), 1);
  EXPECT_EQ(gfx942.waves(64, 33 << 10, 512), 2);
  EXPECT_EQ(find_amd("gfx950")->waves(64, 33 << 10, 256), 4);
  EXPECT_EQ(find_amd("gfx1100")->waves(117, 0, 256), 12);
  EXPECT_EQ(find_amd("gfx1030"), nullptr);
}

} // namespace
} // namespace deepgen::amdgpu_test
