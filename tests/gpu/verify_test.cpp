// What verification on a device notices. Skipped without one.
#include "measure/gpu/cuda_verify_all.h"
#include "tests/gpu/faulty_kernels.h"
#include "tests/gpu/gpu_test.h"

namespace deepgen::cuda {
namespace {

std::vector<Verdict> verdicts(const std::vector<KernelFile>& files, double call_seconds = 10) {
  std::vector<const KernelFile*> list;
  for (const KernelFile& f : files) list.push_back(&f);
  std::vector<Verdict> out(files.size());
  VerifyOptions options;
  options.call_seconds = call_seconds;
  EXPECT_EQ(verify_files(list, options, [&](size_t i, const Verdict& v) { out[i] = v; }), files.size());
  return out;
}

Verdict verdict(const Fault& fault, int64_t k = 37) { return verdicts({ptx_kernel(33, 41, k, fault)})[0]; }

TEST_F(GpuTest, AGoodKernelIsOk) {
  for (const KernelFile& f : {ptx_kernel(1, 1, 1), ptx_kernel(64, 64, 64), ptx_kernel(100, 33, 1000)}) {
    const Verdict v = verdicts({f})[0];
    EXPECT_EQ(v.status, "ok") << v.detail;
    EXPECT_GT(v.error, 0);
    EXPECT_LT(v.error, 1);
  }
}

TEST_F(GpuTest, ALostProductIsNoticed) {
  Fault fault;
  fault.last = "1";
  for (int64_t k : {2, 37, 1000, 16384, 65536}) {
    const Verdict v = verdict(fault, k);
    EXPECT_EQ(v.status, "wrong") << k;
    EXPECT_NE(v.detail.find("expected"), std::string::npos) << v.detail;
  }
}

TEST_F(GpuTest, AnElementThatIsNotWrittenIsNoticed) {
  Fault fault;
  fault.store = "setp.ne.u64 %p, %index, 1352; @%p st.global.f32 [%address], %x;"; // 33 * 41 - 1
  const Verdict v = verdict(fault);
  EXPECT_EQ(v.status, "wrong");
  EXPECT_NE(v.detail.find("not written: row 32, column 40 (1 elements)"), std::string::npos) << v.detail;
}

TEST_F(GpuTest, AWriteBehindARowIsNoticed) {
  Fault fault;
  fault.store =
      "st.global.f32 [%address], %x; setp.eq.u64 %p, %column, 40; @%p st.global.f32 [%address+4], %x;";
  const Verdict v = verdict(fault);
  EXPECT_EQ(v.status, "out_of_bounds") << v.detail;
  EXPECT_NE(v.detail.find("D written 0 elements behind row"), std::string::npos) << v.detail;
}

TEST_F(GpuTest, AWriteBeforeDIsNoticed) {
  Fault fault;
  fault.start = "st.global.f32 [%d+-64], %alpha;";
  const Verdict v = verdict(fault);
  EXPECT_EQ(v.status, "out_of_bounds") << v.detail;
  EXPECT_NE(v.detail.find("64 bytes before"), std::string::npos) << v.detail;
}

TEST_F(GpuTest, AChangedInputIsNoticed) {
  Fault fault;
  fault.product = "st.global.f32 [%b+8], %sum;";
  const Verdict v = verdict(fault);
  EXPECT_NE(v.status, "ok") << v.detail; // "wrong" where the change came before another thread's read
}

TEST_F(GpuTest, AReadOfCThatIsNotCalledForIsNoticed) {
  Fault fault; // where there is a C, it is added with beta 0 too
  fault.product =
      "setp.eq.u64 %p, %c, 0; @%p bra skip; ld.global.f32 %y, [%c]; fma.rn.f32 %sum, %beta, %y, %sum; skip:";
  const Verdict v = verdict(fault);
  EXPECT_EQ(v.status, "wrong") << v.detail;
  EXPECT_NE(v.detail.find("'strided'"), std::string::npos) << v.detail;
}

TEST_F(GpuTest, AWorkspaceThatMustBeAsOneCallFoundItIsNoticed) {
  Fault fault; // the last element is wrong unless the workspace holds what it did before the first call
  fault.product =
      "setp.ne.u64 %p, %index, 1352; @%p bra others; ld.global.u32 %u, [%workspace]; mov.u32 %v, 0;"
      "st.global.u32 [%workspace], %v; setp.ne.u32 %p, %u, -1; @%p add.f32 %sum, %sum, 0f42000000;"
      "others:";
  KernelFile file = ptx_kernel(33, 41, 37, fault);
  file.kernels[0].workspace = 16;
  const Verdict v = verdicts({file})[0];
  EXPECT_EQ(v.status, "wrong");
  EXPECT_NE(v.detail.find("case 'in a row'"), std::string::npos) << v.detail;
}

TEST_F(GpuTest, ATrapIsOneVerdictAndTheNextKernelRuns) {
  Fault trap, illegal;
  trap.start = "trap;";
  illegal.start = "mov.u64 %d, 64;";
  const auto v = verdicts({ptx_kernel(64, 64, 64), ptx_kernel(64, 64, 64, trap), ptx_kernel(65, 64, 64),
                           ptx_kernel(64, 64, 64, illegal), ptx_kernel(66, 64, 64)});
  EXPECT_EQ(v[0].status, "ok") << v[0].detail;
  EXPECT_EQ(v[1].status, "crash");
  EXPECT_NE(v[1].detail.find("CUDA_ERROR_"), std::string::npos) << v[1].detail;
  EXPECT_EQ(v[2].status, "ok") << v[2].detail;
  EXPECT_EQ(v[3].status, "crash");
  EXPECT_NE(v[3].detail.find("ILLEGAL_ADDRESS"), std::string::npos) << v[3].detail;
  EXPECT_EQ(v[4].status, "ok") << v[4].detail;
}

TEST_F(GpuTest, AHangIsOneVerdictAndTheNextKernelRuns) {
  Fault hang;
  hang.start = "forever: bra forever;";
  const auto v = verdicts({ptx_kernel(64, 64, 64, hang), ptx_kernel(64, 64, 64)}, 2);
  EXPECT_EQ(v[0].status, "timeout") << v[0].detail;
  EXPECT_EQ(v[1].status, "ok") << v[1].detail;
}

TEST_F(GpuTest, CodeThatTheDriverRefusesIsUnsupported) {
  KernelFile bad = ptx_kernel(8, 8, 8);
  bad.kernels[0].ptx = ".version 7.0\n.target sm_80\n.address_size 64\nnonsense\n";
  const auto v = verdicts({bad, ptx_kernel(8, 8, 8)});
  EXPECT_EQ(v[0].status, "unsupported");
  EXPECT_EQ(v[1].status, "ok") << v[1].detail;
}

} // namespace
} // namespace deepgen::cuda
