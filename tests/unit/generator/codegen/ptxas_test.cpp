// What ptxas says, and what becomes of a kernel because of it. The outputs are ptxas 13.0.88's.
#include "base/files/files.h"
#include "base/text/error.h"
#include "generator/codegen/ptxas.h"
#include "tests/unit/environment.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace deepgen::ptxas_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr const char* kTwoEntries = R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'deepgen_reduce' for 'sm_90a'
ptxas info    : Function properties for deepgen_reduce
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
ptxas info    : Compile time = 30.499 ms
ptxas info    : Compiling entry function 'deepgen_kernel' for 'sm_90a'
ptxas info    : Function properties for deepgen_kernel
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 72 registers, used 1 barriers, 128 bytes smem
ptxas info    : Compile time = 8.480 ms
)";

constexpr const char* kSpills =
    R"(ptxas warning : For profile sm_90a adjusting per thread register count of 16 to lower bound of 24
ptxas info    : Overriding maximum register limit 256 for 'deepgen_kernel' with  24 of maxrregcount option
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'deepgen_kernel' for 'sm_90a'
ptxas info    : Function properties for deepgen_kernel
    424 bytes stack frame, 548 bytes spill stores, 550 bytes spill loads
ptxas info    : Used 24 registers, used 1 barriers, 424 bytes cumulative stack size, 128 bytes smem
ptxas info    : Compile time = 12.827 ms
)";

constexpr const char* kSerialised =
    R"(ptxas info    : (C7517) warpgroup.wait is injected in around line 78 by compiler to allow use of registers defined by GMMA in function 'deepgen_kernel'
ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient register resources for the wgmma pipeline in the function 'deepgen_kernel'
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'deepgen_kernel' for 'sm_90a'
ptxas info    : Function properties for deepgen_kernel
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 30 registers, used 0 barriers
ptxas info    : Compile time = 34.830 ms
ptxas info    : Function properties for _Z1gf
    16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
)";

constexpr const char* kPtx = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry deepgen_kernel() { ret; }
)";

Kernel kernel_of(const std::string& ptx) {
  Kernel kernel;
  kernel.ptx = ptx;
  kernel.target = "sm_80";
  kernel.launches.emplace_back().entry = "deepgen_kernel";
  return kernel;
}

/// The kernel as if ptxas had said `output` about it.
Kernel assembled(const std::string& output, int64_t threads = 128) {
  const PtxasReport report = parse_ptxas(output);
  Kernel kernel;
  kernel.launches = report.entries;
  for (Launch& l : kernel.launches) l.block = {threads, 1, 1};
  kernel.warnings = report.warnings;
  return kernel;
}

TEST(Ptxas, ReportOfTwoEntries) {
  const PtxasReport report = parse_ptxas(kTwoEntries);
  ASSERT_EQ(report.entries.size(), 2u);
  EXPECT_EQ(report.entries[0].entry, "deepgen_reduce");
  EXPECT_EQ(report.entries[0].registers, 8);
  EXPECT_EQ(report.entries[0].static_shared, 0);
  EXPECT_EQ(report.entries[1].entry, "deepgen_kernel");
  EXPECT_EQ(report.entries[1].registers, 72);
  EXPECT_EQ(report.entries[1].static_shared, 128);
  EXPECT_THAT(report.warnings, IsEmpty());
  EXPECT_EQ(why_rejected(assembled(kTwoEntries)), "");
}

TEST(Ptxas, SpillsAreRejected) {
  const Kernel kernel = assembled(kSpills);
  ASSERT_EQ(kernel.launches.size(), 1u);
  EXPECT_EQ(kernel.launches[0].stack, 424);
  EXPECT_EQ(kernel.launches[0].spill_stores, 548);
  EXPECT_EQ(kernel.launches[0].spill_loads, 550);
  EXPECT_EQ(kernel.launches[0].registers, 24);
  EXPECT_THAT(kernel.warnings,
              testing::ElementsAre(
                  "For profile sm_90a adjusting per thread register count of 16 to lower bound of 24"));
  EXPECT_EQ(why_rejected(kernel),
            "deepgen_kernel uses 24 registers, 424 bytes of stack, 548 bytes of spill stores, "
            "550 bytes of spill loads");
}

TEST(Ptxas, SerialisedWgmmaIsRejected) {
  const Kernel kernel = assembled(kSerialised);
  ASSERT_EQ(kernel.launches.size(), 1u);
  EXPECT_EQ(kernel.launches[0].registers, 30);
  EXPECT_EQ(kernel.launches[0].stack, 0) << "of a called function, not of the entry";
  ASSERT_EQ(kernel.warnings.size(), 2u);
  EXPECT_THAT(why_rejected(kernel), StartsWith("ptxas warns: (C7517) warpgroup.wait is injected"));
  for (const char* code : {"C7508", "C7510", "C7511", "C7514", "C7515", "C7519"})
    EXPECT_THAT(why_rejected(assembled("ptxas warning : (" + std::string(code) + ") text\n")),
                HasSubstr(code));
  EXPECT_EQ(why_rejected(assembled("ptxas info    : (C7509) text\n")), "") << "not one of them";
}

TEST(Ptxas, TooManyRegistersForTheBlockAreRejected) {
  EXPECT_EQ(why_rejected(assembled(kTwoEntries, 512)), "");
  EXPECT_THAT(why_rejected(assembled(kTwoEntries, 1024)), HasSubstr("65536"));
}

class WithPtxas : public testing::Test {
protected:
  void SetUp() override {
    if (find_ptxas().empty()) GTEST_SKIP() << "no ptxas";
  }
};

TEST_F(WithPtxas, AssemblesInMemory) {
  Kernel kernel = kernel_of(kPtx);
  Assembly(kernel).finish(kernel, 30);
  EXPECT_THAT(kernel.code, StartsWith("\x7f"
                                      "ELF"));
  EXPECT_EQ(kernel.assembler, ptxas_version());
  EXPECT_THAT(kernel.assembler, testing::MatchesRegex("ptxas [0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_GT(kernel.launches[0].registers, 0);
}

TEST_F(WithPtxas, SameBytesFromAnotherFolderAndNothingLeft) {
  Kernel first = kernel_of(kPtx), second = kernel_of(kPtx);
  Assembly a(first);
  const std::filesystem::path here = std::filesystem::current_path();
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("ptxas." + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  std::filesystem::current_path(folder);
  Assembly b(second); // while the first still runs
  std::filesystem::current_path(here);
  b.finish(second, 30);
  a.finish(first, 30);
  EXPECT_EQ(first.code, second.code);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove(folder);
}

TEST_F(WithPtxas, BrokenPtxIsQuoted) {
  Kernel kernel = kernel_of(std::string(kPtx) + "nonsense\n");
  try {
    Assembly(kernel).finish(kernel, 30);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("ptxas refuses"));
    EXPECT_THAT(e.what(), HasSubstr("kernel.ptx, line 5")) << "not the number of a descriptor";
  }
}

TEST_F(WithPtxas, AbandonedWithoutWaiting) {
  Assembly unfinished(kernel_of(kPtx)); // the destructor ends it
}

TEST(Ptxas, DoingWithoutIsNoFailure) {
  const Environment chosen("DEEPGEN_PTXAS", "none");
  EXPECT_EQ(ptxas_version(), "");
  Kernel kernel = kernel_of(kPtx);
  Assembly(kernel).finish(kernel, 30);
  EXPECT_EQ(kernel.code, "");
  EXPECT_EQ(kernel.assembler, "");
}

TEST(Ptxas, FoundByCudaHomeFirst) {
  const std::string home = testing::TempDir() + "cuda" + std::to_string(getpid());
  std::filesystem::create_directories(home + "/bin");
  write_atomically(home + "/bin/ptxas", "#!/bin/sh\n");
  const Environment chosen("DEEPGEN_PTXAS", nullptr), cuda("CUDA_HOME", home.c_str());
  EXPECT_NE(find_ptxas(), home + "/bin/ptxas") << "cannot be executed";
  std::filesystem::permissions(home + "/bin/ptxas", std::filesystem::perms::owner_all);
  EXPECT_EQ(find_ptxas(), home + "/bin/ptxas");
  std::filesystem::remove_all(home);
}

TEST(Ptxas, WrongChoiceIsAnError) {
  const Environment chosen("DEEPGEN_PTXAS", "/nonexistent/ptxas");
  EXPECT_THROW(find_ptxas(), Error);
}

/// A stand-in that answers --version and then does what `body` says.
std::string script(const char* name, const std::string& body) {
  const std::string path = testing::TempDir() + name + std::to_string(getpid());
  write_atomically(path, "#!/bin/sh\n[ \"$1\" = --version ] && { echo 'release 1.2, V1.2.3'; exit 0; }\n" +
                             body + "\n");
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

TEST(Ptxas, HangingOneIsKilled) {
  const std::string program = script("hang", "exec sleep 100");
  const Environment chosen("DEEPGEN_PTXAS", program.c_str());
  EXPECT_EQ(ptxas_version(), "ptxas 1.2.3");
  Kernel kernel = kernel_of(kPtx);
  Assembly running(kernel);
  EXPECT_THROW(running.finish(kernel, 0.2), Error);
  std::filesystem::remove(program);
}

TEST(Ptxas, CrashingOneIsAnError) {
  const std::string program = script("crash", "echo 'ptxas fatal   : out of luck' >&2; kill -SEGV $$");
  const Environment chosen("DEEPGEN_PTXAS", program.c_str());
  Kernel kernel = kernel_of(kPtx);
  Assembly running(kernel);
  try {
    running.finish(kernel, 30);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("out of luck"));
  }
  std::filesystem::remove(program);
}

} // namespace
} // namespace deepgen::ptxas_test
