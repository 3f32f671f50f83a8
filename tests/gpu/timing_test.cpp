// Timing on a device, and the vendor library beside it. Skipped without one.
#include "base/json/json.h"
#include "measure/gpu/cuda_bench.h"
#include "measure/gpu/cuda_tolerance.h"
#include "measure/gpu/cuda_verify.h"
#include "measure/gpu/toolbox/cuda_operands.h"
#include "measure/process/worker.h"
#include "measure/race/finals.h"
#include "measure/vendor/gpu/cuda_vendor.h"
#include "tests/gpu/faulty_kernels.h"
#include "tests/gpu/gpu_test.h"

namespace deepgen::cuda {
namespace {

/// Runs `body` where the driver may be started; fails the test with what it throws.
void in_worker(const std::function<void(Channel&)>& body,
               const std::function<void(const Json&)>& on_message) {
  try {
    const WorkerEnd end = run_worker(
        [&](Channel& channel) {
          channel.step("a test", 300);
          body(channel);
        },
        on_message);
    EXPECT_EQ(end.kind, WorkerEnd::done) << end.detail;
  } catch (const std::exception& e) {
    ADD_FAILURE() << e.what();
  }
}

std::vector<ArmResult> race_of(const std::vector<KernelFile>& files) {
  Bench bench(files[0].problem.gemm(), GpuTest::device(), 0, 1);
  std::vector<Arm> arms;
  for (const KernelFile& f : files) arms.push_back(bench.kernel_arm(f.choice.text(), *f.find("main")));
  RaceOptions options;
  options.deadline = wall_seconds() + 10;
  options.call_seconds = 3;
  bench.complete(options, Bench::full_heat);
  Progress progress("test");
  return full_race(arms, 11, 20, options, progress);
}

TEST_F(GpuTest, AKernelTakesAsLongAsItself) {
  const auto r = race_of({ptx_kernel(512, 512, 512), ptx_kernel(512, 512, 512)});
  const Timing t = summarize(r[1], r[0], 1);
  EXPECT_NEAR(t.ratio, 1, 0.03);
  EXPECT_GT(t.seconds, 1e-6);
  EXPECT_GT(r[0].rounds.begin()->second.megahertz, 100);
  EXPECT_LT(r[0].rounds.begin()->second.megahertz, 4000);
}

/// With launches that may overlap, where the device has them: the driver takes the graph whose dependencies
/// were made full.
TEST_F(GpuTest, EveryRegimeIsTimed) {
  KernelFile file = ptx_kernel(512, 512, 512);
  for (Launch& launch : file.kernels.front().launches) launch.dependent = device().compute_capability() >= 90;
  Bench bench(file.problem.gemm(), device(), 0, 1);
  const Arm arm = bench.kernel_arm("kernel", *file.find("main"));
  std::vector<Arm> arms;
  for (Regime regime : {Regime::sustained, Regime::serial, Regime::bursts}) {
    arms.emplace_back().name = to_string(regime);
    arms.back().make_sampler = [make = arm.make_in_regime, regime] { return make(regime); };
  }
  RaceOptions options;
  options.deadline = wall_seconds() + 10;
  bench.complete(options, Bench::brief_heat);
  Progress progress("test");
  const auto r = full_race(arms, 5, 5, options, progress);
  for (size_t i = 0; i < arms.size(); ++i) {
    EXPECT_TRUE(r[i].timed()) << arms[i].name << ": " << r[i].failure << " " << r[i].detail;
    EXPECT_EQ(r[i].rounds.size(), 5u);
    for (const auto& [round, sample] : r[i].rounds) EXPECT_GT(sample.seconds, 1e-6);
  }
}

TEST_F(GpuTest, HalfTheWorkTakesLessTime) {
  Fault half;
  half.last = "512";
  const auto r = race_of({ptx_kernel(512, 512, 1024), ptx_kernel(512, 512, 1024, half)});
  EXPECT_LT(summarize(r[1], r[0], 1).ratio, 0.7);
}

/// Few threads that wait for memory: 16 MB of weights stay in a cache between calls, or are fetched each
/// time.
TEST_F(GpuTest, CachesAreColdOrWarmAsAsked) {
  const KernelFile file = ptx_kernel(1, 4096, 1024);
  const Caches asked[] = {Caches::cold, Caches::weights_cold, Caches::warm};
  std::vector<std::unique_ptr<Bench>> benches;
  std::vector<Arm> arms;
  for (Caches caches : asked) {
    benches.push_back(std::make_unique<Bench>(file.problem.gemm(), device(), 0, 1, caches));
    arms.push_back(benches.back()->kernel_arm(to_string(caches), *file.find("main")));
  }
  RaceOptions options;
  options.deadline = wall_seconds() + 10;
  benches.front()->complete(options, Bench::brief_heat);
  Progress progress("test");
  const auto r = full_race(arms, 11, 20, options, progress);
  for (size_t i = 0; i < arms.size(); ++i) ASSERT_TRUE(r[i].timed()) << arms[i].name << ": " << r[i].detail;
  EXPECT_NEAR(summarize(r[1], r[0], 1).ratio, 1, 0.1) << "the weights are nearly all that is read";
  EXPECT_LT(summarize(r[2], r[0], 1).ratio, 0.85);
}

/// Faster than the memory: from a cache. Far slower: no measure of the memory.
TEST_F(GpuTest, ReadingIsAsFastAsTheMemoryAndNoFaster) {
  if (device().memory_bandwidth == 0) GTEST_SKIP() << "the driver does not tell the memory's bandwidth";
  Gemm p;
  p.m = 1, p.n = p.k = 8192, p.a = p.b = p.d = Type::bf16, p.layout = Layout::nt;
  deepgen::complete(p);
  Bench bench(p, device(), 0, 1);
  RaceOptions options;
  options.deadline = wall_seconds() + 10;
  Field field;
  field.finalists = 1;
  field.arm = [&](size_t, const std::string&) { return *bench.read_arm(); };
  bench.complete(options, Bench::full_heat);
  Progress progress("test");
  const FinalsResult r = run_finals(field, options, progress);
  ASSERT_TRUE(r.again.timed()) << r.again.detail;
  const double speed = double(read_bytes(p)) / summarize(r.again, r.again, 1).seconds;
  EXPECT_LT(speed, 1.02 * double(device().memory_bandwidth));
  EXPECT_GT(speed, 0.6 * double(device().memory_bandwidth));
}

TEST_F(GpuTest, AnArmThatTrapsOrHangsStaysOutOfTheRace) {
  Fault trap, hang;
  trap.start = "trap;", hang.start = "forever: bra forever;";
  const auto r = race_of({ptx_kernel(64, 64, 64), ptx_kernel(64, 64, 64, trap), ptx_kernel(64, 64, 64, hang),
                          ptx_kernel(64, 64, 64)});
  EXPECT_TRUE(r[0].timed() && r[3].timed());
  EXPECT_EQ(r[1].failure, "crash");
  EXPECT_NE(r[1].detail.find("CUDA_ERROR"), std::string::npos) << r[1].detail;
  EXPECT_EQ(r[2].failure, "timeout");
}

Gemm problem(Type a, Type b, Type d, Layout layout, const std::vector<EpilogueOp>& epilogue = {},
             int64_t batch = 1) {
  Gemm p;
  p.m = 64, p.n = 96, p.k = 128, p.batch = batch, p.a = a, p.b = b, p.d = d, p.layout = layout,
  p.epilogue = epilogue;
  complete(p);
  return p;
}

/// Holds every algorithm that cuBLASLt has for the problem against the reference; returns how many those are,
/// and of a gated problem in `halves` how many of them make a product for each weight.
size_t verify_vendor(const Gemm& p, size_t* halves = nullptr) {
  size_t algorithms = 0;
  in_worker(
      [&](Channel& channel) {
        Bench bench(p, GpuTest::device(), 0, 1);
        const Vendor v = ask_vendor(bench.ring());
        channel.send({{"count", v.algorithms.size()}, {"why", v.why_not}});
        Kernel k;
        k.problem = p, k.align_a = k.align_b = k.align_d = 16;
        Verifier verifier(bench.ring().context(), bench.ring().tools(), 1);
        // The library writes the product in D's type before the kernel behind it reads that.
        const double rounding = v.plan.separate() && p.a != Type::i8 ? tolerance_of(p, "").output : 0;
        for (const Vendor::Algorithm& a : v.algorithms) {
          const Verdict one =
              verifier.verify_call(k, vendor_call(v.plan, a, bench.ring()), call_cases(p).front(), rounding);
          channel.send(
              {{"status", one.status}, {"detail", a.text + ": " + one.detail}, {"halves", a.halves}});
        }
      },
      [&](const Json& m) {
        algorithms = m.value("count", algorithms);
        if (halves) *halves += m.value("halves", false);
        EXPECT_EQ(m.value("status", "ok"), "ok") << m.value("detail", "") << " of " << p.key();
      });
  return algorithms;
}

TEST_F(GpuTest, CublasLtComputesWhatTheProblemSays) {
  using enum Type;
  size_t found = verify_vendor(problem(f32, f32, f32, Layout::nn));
  if (!found) GTEST_SKIP() << "no cuBLASLt here";
  for (Layout l : {Layout::nn, Layout::nt, Layout::tn, Layout::tt}) {
    EXPECT_GT(verify_vendor(problem(f32, f32, f32, l)), 0u);
    EXPECT_GT(verify_vendor(problem(bf16, bf16, bf16, l)), 0u);
    EXPECT_GT(verify_vendor(problem(f64, f64, f64, l)), 0u);
  }
  EXPECT_GT(verify_vendor(problem(f16, f16, f32, Layout::nt)), 0u);
  Gemm odd = problem(bf16, bf16, bf16, Layout::nt);
  odd.m = 33, odd.n = 41, odd.k = 37;
  EXPECT_GT(verify_vendor(odd), 0u);
  EXPECT_GT(verify_vendor(problem(tf32, tf32, f32, Layout::nt)), 0u);
  EXPECT_GT(verify_vendor(problem(f16, f16, f16, Layout::nt, {}, 5)), 0u);
  EXPECT_GT(verify_vendor(problem(i8, i8, i32, Layout::nt)), 0u);
  EXPECT_GT(verify_vendor(problem(i8, i8, i8, Layout::nt)), 0u);
  EXPECT_GT(verify_vendor(problem(i8, i8, bf16, Layout::nt)), 0u);
  const bool fp8 = device().compute_capability() >= 89;
  EXPECT_EQ(verify_vendor(problem(e4m3, e4m3, bf16, Layout::nt)) > 0, fp8);
}

TEST_F(GpuTest, CublasLtLoopsOverGroups) {
  using enum Type;
  using enum EpilogueOp;
  if (!verify_vendor(problem(f32, f32, f32, Layout::nn))) GTEST_SKIP() << "no cuBLASLt here";
  for (Gemm p : {problem(bf16, bf16, bf16, Layout::nt), problem(f16, f16, f32, Layout::nn, {bias, relu}),
                 problem(bf16, bf16, f32, Layout::nt, {scale_col, silu, multiply})})
    for (bool gated : {false, true}) {
      p.n = 128, p.groups = 5;
      if (gated) p.gate = silu;
      EXPECT_EQ(verify_vendor(p), gated ? 4u : 2u)
          << "the heuristic's first, and the fastest of some, with a gate in both ways";
    }
}

TEST_F(GpuTest, CublasLtMultipliesWeightsOfAGateAtOnceAndOneByOne) {
  using enum Type;
  if (!verify_vendor(problem(f32, f32, f32, Layout::nn))) GTEST_SKIP() << "no cuBLASLt here";
  std::vector<Gemm> gated = {problem(f16, f16, f16, Layout::tn), problem(bf16, bf16, f32, Layout::nn, {}, 3),
                             problem(bf16, bf16, bf16, Layout::nt, {EpilogueOp::residual}),
                             problem(i8, i8, bf16, Layout::nt), problem(f32, f32, f32, Layout::tt)};
  if (device().compute_capability() >= 89) gated.push_back(problem(e4m3, e4m3, bf16, Layout::nt));
  for (Gemm& p : gated) {
    p.gate = EpilogueOp::silu;
    size_t halves = 0;
    const size_t all = verify_vendor(p, &halves);
    EXPECT_GT(halves, 0u) << p.key();
    EXPECT_GT(all, halves) << p.key();
  }
  Gemm odd = problem(bf16, bf16, bf16, Layout::nn); // of which the second weight is aligned to 2 bytes
  odd.m = 33, odd.n = 41, odd.k = 37, odd.gate = EpilogueOp::gelu_tanh;
  EXPECT_GT(verify_vendor(odd), 0u);
}

TEST_F(GpuTest, CublasLtWithEpilogues) {
  using enum Type;
  using enum EpilogueOp;
  if (!verify_vendor(problem(f32, f32, f32, Layout::nn))) GTEST_SKIP() << "no cuBLASLt here";
  for (const std::vector<EpilogueOp>& e : std::vector<std::vector<EpilogueOp>>{
           {bias}, {bias, relu}, {bias, gelu_tanh}, {residual}, {bias, residual, relu}})
    EXPECT_GT(verify_vendor(problem(bf16, bf16, bf16, Layout::nt, e)), 0u) << epilogue_text(e);
  EXPECT_GT(verify_vendor(problem(f16, f16, f16, Layout::nn, {bias, relu}, 3)), 0u);
  EXPECT_GT(verify_vendor(problem(bf16, bf16, f32, Layout::nt, {bias, silu, multiply})), 0u);
  EXPECT_GT(verify_vendor(problem(bf16, bf16, f32, Layout::nt, {bias, prelu, residual})), 0u);
  EXPECT_GT(verify_vendor(problem(i8, i8, bf16, Layout::nt, {scale_row, scale_col, bias})), 0u);
  if (device().compute_capability() < 89) return;
  EXPECT_GT(verify_vendor(problem(e4m3, e4m3, bf16, Layout::nt, {scale_a, scale_b})), 0u);
  EXPECT_GT(verify_vendor(problem(e4m3, e4m3, bf16, Layout::nt, {scale_a, scale_b, bias, gelu_tanh})), 0u);
}

} // namespace
} // namespace deepgen::cuda
