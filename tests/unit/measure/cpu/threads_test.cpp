// Calls on several threads: cut as the runtime cuts them, with the same bits, and timed in a confined worker.
#include "base/text/error.h"
#include "measure/cpu/arms.h"
#include "measure/cpu/gemm_subject.h"
#include "measure/cpu/thread_call.h"
#include "runtime/core/cpus.h"
#include "tests/unit/measure/test_kernels.h"

#include <gtest/gtest.h>

#include <cstring>

#ifdef __SANITIZE_ADDRESS__
/// As in onednn_test.cpp, of another program.
extern "C" const char* __lsan_default_suppressions() { return "leak:libdnnl\n"; }
#endif

namespace deepgen::threads_test {
namespace {

using namespace test_kernels;

constexpr int64_t kElements = kM * kN * 2;

/// What each task finds in its own workspace must be what it has left there: pieces do not overlap.
void good_with_workspace(const uint64_t* x) {
  auto* workspace = reinterpret_cast<unsigned char*>(x[15]);
  const auto mark = (unsigned char)(1 + x[16] * 22 + x[18] * 2 + x[20]);
  std::memset(workspace, mark, 100);
  good(x);
  for (int i = 0; i < 100; ++i)
    if (workspace[i] != mark) reinterpret_cast<float*>(x[3])[0] = -1;
}

std::vector<float> product(const GemmOperands& operands) {
  const auto* d = static_cast<const float*>(operands.buffers().d);
  return {d, d + kElements};
}

TEST(Threads, CallsHaveTheBitsOfOneThread) {
  const Kernel kernel = kernel_of(good_with_workspace);
  const GemmOperands operands(small_problem(), workspace_piece(kernel.workspace) * 7, 3);
  operands.touch();
  LoadedKernel(kernel).call(operands.values());
  const std::vector<float> alone = product(operands);
  for (int threads : {1, 2, 3, 7}) {
    operands.touch();
    ThreadCall::start(threads);
    ThreadCall call(kernel, operands.values(), threads);
    EXPECT_LE(call.tasks(), threads);
    EXPECT_EQ(call.tasks() > 1, threads > 1);
    for (int i = 0; i < 20; ++i) call.run();
    EXPECT_EQ(std::memcmp(product(operands).data(), alone.data(), alone.size() * sizeof(float)), 0)
        << threads << " threads";
  }
}

TEST(Threads, OnlyCallsThatTheRuntimeSharesOutAreTimedOnThem) {
  Gemm p = small_problem();
  EXPECT_EQ(shared_by(p), 1);
  p.threads = 2;
  EXPECT_EQ(shared_by(p), 1) << "so little work is never shared out";
  p.m = p.n = p.k = 512;
  EXPECT_EQ(shared_by(p), 2);
  p.threads = 1;
  EXPECT_EQ(shared_by(p), 1);
}

/// The test kernel with more work, as its key says.
Kernel kernel_for(int threads) {
  Kernel k = kernel_of(good);
  Gemm p = small_problem();
  p.batch = 2, p.k = 1 << 20; // the kernel itself has 17
  p.threads = threads;
  k.problem = p;
  return k;
}

TEST(Threads, ARaceStartsThemBeforeItIsConfined) {
  if (cpus::usable() < 2) GTEST_SKIP() << "one CPU";
  const Kernel kernel = kernel_for(2);
  ASSERT_EQ(shared_by(kernel.problem), 2);
  const GemmOperands operands(small_problem(), workspace_piece(kernel.workspace) * 2, 3);
  const std::vector<Arm> arms = {kernel_arm("first", kernel, operands),
                                 kernel_arm("second", kernel, operands)};
  EXPECT_EQ(arms.front().threads, 2);
  RaceOptions options;
  options.sample_seconds = 0.0005;
  options.deadline = wall_seconds() + 20;
  Progress progress("test");
  for (const ArmResult& r : full_race(arms, 3, 5, options, progress)) {
    EXPECT_EQ(r.failure, "") << r.detail;
    EXPECT_GE(r.rounds.size(), 3u);
  }
}

TEST(Threads, MoreThanThisHostHasAreRefused) {
  const GemmOperands operands(small_problem(), 128, 3);
  const int threads = cpus::usable() + 1;
  const Kernel kernel = kernel_for(threads);
  try {
    kernel_arm("too many", kernel, operands);
    FAIL() << "not refused";
  } catch (const Error& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("fewer CPUs"), std::string::npos) << text;
    EXPECT_NE(text.find("THREADS"), std::string::npos) << text;
  }
}

TEST(Threads, AStopwatchMissesThoseThatDoNotRun) {
  Stopwatch watch;
  EXPECT_THROW(watch.watch_all_threads(1 << 20), HostFault);
}

Gemm cube_on_two(const std::string& epilogue) {
  return Gemm::parse("gemm m=256 n=256 k=256 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=" +
                     epilogue + " threads=2 align=4");
}

/// On as many threads, and others wait until these sleep. A fused step is for oneDNN.
TEST(Threads, AVendorIsTimedOnAsMany) {
  if (cpus::usable() < 2) GTEST_SKIP() << "one CPU";
  for (const auto& [epilogue, library] : {std::pair{"none", "openblas"}, std::pair{"bias+gelu", "onednn"}}) {
    const Gemm p = cube_on_two(epilogue);
    const std::unique_ptr<Subject> subject = subject_of(Problem(p));
    const Baseline baseline = subject->baseline();
    if (baseline.name.empty()) {
      EXPECT_NE(baseline.why_not, "");
      continue; // not installed
    }
    EXPECT_EQ(baseline.name.substr(0, std::strlen(library)), library);
    const std::unique_ptr<TimingOperands> operands = subject->operands(64, 1);
    const Kernel kernel = kernel_for(2);
    const GemmOperands small(small_problem(), workspace_piece(kernel.workspace) * 2, 3);
    const std::vector<Arm> arms = {kernel_arm("ours", kernel, small), baseline.arm(*operands)};
    EXPECT_EQ(arms[1].threads, 2);
    EXPECT_GT(arms[1].rest, 0.03);
    RaceOptions options;
    options.sample_seconds = 0.001;
    options.deadline = wall_seconds() + 20;
    Progress progress("test");
    for (const ArmResult& r : full_race(arms, 3, 3, options, progress)) {
      EXPECT_EQ(r.failure, "") << library << ": " << r.detail;
      EXPECT_EQ(r.rounds.size(), 3u);
    }
  }
}

TEST(Threads, ACallWithLittleWorkHasTheVendorOfOne) {
  Gemm p = cube_on_two("none");
  p.m = 16;
  const std::unique_ptr<Subject> subject = subject_of(Problem(p));
  const Baseline baseline = subject->baseline();
  if (baseline.name.empty()) GTEST_SKIP() << baseline.why_not;
  const Arm arm = baseline.arm(*subject->operands(64, 1));
  EXPECT_EQ(arm.threads, 1);
  EXPECT_FALSE(arm.start);
  EXPECT_EQ(arm.rest, 0);
}

} // namespace
} // namespace deepgen::threads_test
