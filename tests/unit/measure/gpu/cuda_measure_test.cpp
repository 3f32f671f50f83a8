// What measuring on CUDA devices decides without one.
#include "base/files/files.h"
#include "base/files/locks.h"
#include "base/text/error.h"
#include "measure/commands/environment.h"
#include "measure/devices/cuda_take.h"
#include "measure/gpu/cuda_bench.h"
#include "measure/gpu/cuda_groups.h"
#include "measure/gpu/cuda_verify.h"
#include "measure/gpu/toolbox/cuda_values.h"
#include "measure/gpu/toolbox/host_kernels.h"
#include "measure/race/finals.h"
#include "measure/vendor/gpu/cuda_vendor.h"
#include "tests/paths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fcntl.h>
#include <functional>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace deepgen::cuda::cuda_measure_test {
namespace {

Gemm problem(Type input, Type output, int64_t m, int64_t n, int64_t k) {
  Gemm p;
  p.m = m, p.n = n, p.k = k, p.a = p.b = input, p.d = output;
  complete(p);
  return p;
}

TEST(CudaVerify, CasesCoverWhatACallMayPass) {
  Gemm p = problem(Type::f16, Type::f16, 64, 64, 64);
  p.batch = 3;
  p.epilogue = {EpilogueOp::residual};
  bool in_place = false, nan_c = false, reuse = false, a = false, b = false, row = false;
  for (const CallCase& c : call_cases(p)) {
    in_place |= c.c == CallCase::in_place && c.beta != 0;
    nan_c |= c.c == CallCase::separate && c.beta == 0;
    reuse |= c.reuse, row |= c.in_a_row;
    a |= c.broadcast == CallCase::a, b |= c.broadcast == CallCase::b;
  }
  EXPECT_TRUE(in_place && nan_c && reuse && a && b && row);
  EXPECT_EQ(call_cases(problem(Type::f16, Type::f16, 8192, 8192, 8192)).size(), 2u);
}

/// What check_written() says of elements that are -1 where `is` has it, and 5 elsewhere.
template <typename T>
Finding untouched(Type type, int64_t rows, int64_t columns, const std::function<bool(int64_t, int64_t)>& is) {
  Array d;
  d.rows = rows, d.columns = columns, d.ld = columns + 3, d.type = int32_t(type);
  std::vector<T> values(size_t(rows * d.ld), T(-1)); // between rows there are canaries
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) values[size_t(r * d.ld + c)] = is(r, c) ? T(-1) : T(5);
  d.data = reinterpret_cast<uint64_t>(values.data());
  Finding finding;
  host::check_written(d, finding);
  return finding;
}

TEST(CudaVerify, MinusOneIsAValueAndARunOfItIsNot) {
  const auto some = [](int64_t r, int64_t c) { return (r * 40 + c) % 7 == 3; };
  EXPECT_EQ(untouched<int32_t>(Type::i32, 9, 40, some).count, 0u);
  EXPECT_EQ(untouched<int8_t>(Type::i8, 9, 40, some).count, 0u);
  const auto row = [](int64_t r, int64_t) { return r == 8; };
  const Finding words = untouched<int32_t>(Type::i32, 9, 40, row),
                bytes = untouched<int8_t>(Type::i8, 9, 70, row);
  EXPECT_GT(words.count, 0u);
  EXPECT_GE(words.place, 8u * 40);
  EXPECT_GT(bytes.count, 0u);
  EXPECT_GE(bytes.place, 8u * 70);
  // Of other types no number has all bits set: one is enough.
  EXPECT_EQ(
      untouched<int32_t>(Type::f32, 9, 40, [](int64_t r, int64_t c) { return r == 8 && c == 39; }).count, 1u);
  EXPECT_EQ(untouched<int32_t>(Type::i32, 1, 3, [](int64_t, int64_t) { return true; }).count,
            3u); // all there are
}

TEST(CudaVerify, ChecksAllBlocksOfSmallProblemsAndTheEndsOfLargeOnes) {
  Gemm small = problem(Type::f32, Type::f32, 33, 7, 5);
  small.batch = 2;
  EXPECT_EQ(checked_blocks(small, 1), (std::vector<int64_t>{0, 1, 2, 3}));
  const std::vector<int64_t> some = checked_blocks(problem(Type::f16, Type::f16, 8192, 8192, 8192), 1);
  EXPECT_EQ(some.front(), 0);
  EXPECT_EQ(some.back(), 255);
  EXPECT_LT(some.size(), 20u);
  EXPECT_GT(some.size(), 6u);
}

TEST(CudaValues, IntegersFillTheirRange) {
  const Values v = values_of(problem(Type::i8, Type::i32, 8, 8, 8), Operand::a, 1);
  EXPECT_EQ(std::rint(v.centre - v.amplitude), -128);
  EXPECT_EQ(std::rint(v.centre + v.amplitude), 127);
  EXPECT_NE(values_of(problem(Type::i8, Type::i32, 8, 8, 8), Operand::b, 1).seed, v.seed);
}

TEST(CudaBench, TheRingIsLargerThanTheCache) {
  constexpr int64_t kCache = int64_t(50) << 20, kMemory = int64_t(80) << 30;
  EXPECT_EQ(ring_sets(int64_t(1) << 30, 0, kCache, kMemory), 2);
  EXPECT_EQ(ring_sets(int64_t(6) << 20, 0, kCache, kMemory), 25);
  EXPECT_EQ(ring_sets(int64_t(6) << 20, int64_t(64) << 20, kCache, kMemory),
            25); // cold without the workspace too
  EXPECT_EQ(ring_sets(20000, 0, kCache, kMemory), 1024);
  EXPECT_EQ(ring_sets(int64_t(60) << 30, 0, kCache, kMemory), 1); // what fits
  EXPECT_EQ(ring_sets(20000, int64_t(1) << 30, kCache, kMemory), 79);
}

TEST(CudaBench, OperandsThatStreamAreInSeveralPlaces) {
  EXPECT_EQ(ring_places(int64_t(525) << 20, 57e9), 8);
  EXPECT_EQ(ring_places(int64_t(400) << 20, 1.1e12), 2) << "a sample has no time for more";
  EXPECT_EQ(ring_places(int64_t(3) << 30, 0.1e12), 3);
  EXPECT_EQ(ring_places(100, 1), 8);
  constexpr int64_t kCache = int64_t(50) << 20, kMemory = int64_t(80) << 30;
  EXPECT_EQ(ring_sets(int64_t(1) << 30, 0, kCache, kMemory, 1, 8), 8);
  EXPECT_EQ(ring_sets(int64_t(6) << 20, 0, kCache, kMemory, 1, 8), 25);
  EXPECT_EQ(ring_sets(int64_t(30) << 30, 0, kCache, kMemory, 1, 8), 2) << "what fits";
}

TEST(CudaBench, SamplesAreLongAndWholeTurnsOfTheRing) {
  EXPECT_EQ(ring_launches(kSampleSeconds, 2, 1e-3), 4);
  EXPECT_EQ(ring_launches(kSampleSeconds, 25, 10e-6), 250);
  EXPECT_EQ(ring_launches(kSampleSeconds, 300, 10e-6), 300);
  EXPECT_EQ(ring_launches(kSampleSeconds, 300, 1e-6), 900) << "not 1024";
  EXPECT_EQ(ring_launches(kSampleSeconds, 1024, 2e-6), 1024);
}

TEST(CudaBench, SamplesOfLongCallsTakeTurnsWithTheRing) {
  EXPECT_EQ(ring_launches(kSampleSeconds, 2, 20e-3), 1);
  EXPECT_EQ(ring_launches(kSampleSeconds, 8, 2.6e-3), 1);
  EXPECT_EQ(ring_launches(kSampleSeconds, 8, 0.7e-3), 4);
  EXPECT_EQ(ring_launches(kSampleSeconds, 8, 0.5e-3), 8)
      << "else every sample would begin on what the one before has read";
  EXPECT_EQ(ring_launches(kSampleSeconds, 1024, 1e-3), 32)
      << "a slow kernel of a small problem: no more than 32 graphs";
}

TEST(CudaBench, KindsOfSetsAreTimedEquallyOften) {
  constexpr int64_t kCache = int64_t(50) << 20, kMemory = int64_t(80) << 30;
  EXPECT_EQ(ring_sets(int64_t(6) << 20, 0, kCache, kMemory, 2), 26);
  EXPECT_EQ(ring_sets(20000, int64_t(1) << 30, kCache, kMemory, 2), 78);
  EXPECT_EQ(ring_sets(int64_t(60) << 30, 0, kCache, kMemory, 2), 1) << "what fits";
  EXPECT_EQ(ring_launches(kSampleSeconds, 2, 20e-3, 2), 2) << "even and skewed, however long they take";
  EXPECT_EQ(ring_launches(kSampleSeconds, 1, 20e-3, 2), 1);
  EXPECT_EQ(ring_launches(kSampleSeconds, 800, 0.1e-3, 2), 26)
      << "not 25, after which the next sample would begin with the other kind";
  EXPECT_EQ(ring_launches(kSampleSeconds, 26, 10e-6, 2), 260);
  EXPECT_EQ(ring_launches(kBurst, 2, 2e-3, 2), 2);
  EXPECT_EQ(ring_launches(kBurst, 300, 10.2e-6, 2), 100) << "not 99";
}

TEST(CudaBench, BurstsTakeTurnsWithTheRing) {
  EXPECT_EQ(ring_launches(kBurst, 1024, 10e-6), 100);
  EXPECT_EQ(ring_launches(kBurst, 300, 10e-6), 100);
  EXPECT_EQ(ring_launches(kBurst, 150, 10e-6), 150)
      << "else every burst would begin on what the one before has read";
  EXPECT_EQ(ring_launches(kBurst, 25, 10e-6), 100);
  EXPECT_EQ(ring_launches(kBurst, 1024, 0.5e-6), 1024);
  EXPECT_EQ(ring_launches(kBurst, 2, 2e-3), 1);
  EXPECT_EQ(ring_launches(kBurst, 2, 0.7e-3), 2);
}

TEST(CudaBench, TheMemoryIsReadAsMuchAsTheLargerInput) {
  Gemm p = problem(Type::bf16, Type::bf16, 1, 4096, 4096);
  EXPECT_EQ(read_bytes(p), 2 * 4096 * 4096);
  p.gate = EpilogueOp::silu;
  EXPECT_EQ(read_bytes(p), 2 * 2 * 4096 * 4096) << "both weights";
  p.groups = 8;
  EXPECT_EQ(read_bytes(p), 8 * 2 * 2 * 4096 * 4096);
  p.m = 10000, p.groups = 0, p.gate.reset();
  EXPECT_EQ(read_bytes(p), 2 * 10000 * 4096);
  EXPECT_EQ(read_bytes(problem(Type::i8, Type::i32, 1, 1, 1)), 16);
}

TEST(CudaBench, ASetHoldsEveryMatrixOfACall) {
  Gemm p = problem(Type::bf16, Type::bf16, 100, 200, 300);
  EXPECT_EQ(set_bytes(p), 2 * (100 * 300 + 300 * 200 + 100 * 200));
  p.epilogue = {EpilogueOp::residual, EpilogueOp::multiply};
  EXPECT_EQ(set_bytes(p), 2 * (100 * 300 + 300 * 200 + 3 * 100 * 200));
}

/// A simulated device: samples come from arms that never were kernels.
Arm simulated(double seconds) {
  Arm arm;
  arm.make_sampler = [seconds] { return Sampler{[seconds] { return Sample{seconds, true, 1500}; }, 100}; };
  return arm;
}

Arm failing(const char* why) {
  Arm arm;
  arm.make_sampler = [why]() -> Sampler { throw std::runtime_error(why); };
  return arm;
}

RaceOptions within(double seconds) {
  RaceOptions options;
  options.deadline = wall_seconds() + seconds;
  return options;
}

TEST(CudaBench, SamplersRaceLikeCalls) {
  Arm late = simulated(1e-5);
  late.make_sampler = [count = std::make_shared<int>(0)] {
    return Sampler{[count]() -> Sample {
                     if (++*count == 4) throw std::runtime_error("CUDA_ERROR_LAUNCH_FAILED");
                     return {1e-5, true, 1500};
                   },
                   1};
  };
  Progress progress("test");
  const auto r = halving_race(
      {simulated(2e-5), simulated(1e-5), failing("CUDA_ERROR_ILLEGAL_ADDRESS"), late, simulated(9e-5)},
      within(20), progress);
  EXPECT_NEAR(summarize(r[1], r[0], 1).ratio, 0.5, 1e-9);
  EXPECT_EQ(r[2].failure, "crash");
  EXPECT_EQ(r[2].detail, "CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_EQ(r[3].failure, "crash");
  EXPECT_EQ(r[3].detail, "CUDA_ERROR_LAUNCH_FAILED");
  EXPECT_TRUE(r[4].dropped);
  EXPECT_EQ(r[1].rounds.begin()->second.megahertz, 1500);
}

/// The kernel for lack of memory, or a person: once it runs again, twice the command fails.
TEST(CudaBench, AWorkerKilledFromElsewhereRunsAgain) {
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  int* samples = static_cast<int*>(page);
  Progress progress("test");
  for (int kills : {1, 2}) {
    *samples = 0;
    Arm killed = simulated(1e-5);
    killed.make_sampler = [=] {
      return Sampler{[=]() -> Sample {
                       if (++*samples <= kills) raise(SIGKILL);
                       return {1e-5, true, 1500};
                     },
                     1};
    };
    const std::vector<Arm> arms = {simulated(2e-5), killed};
    if (kills > 1) {
      EXPECT_THROW(halving_race(arms, within(20), progress), HostFault);
      continue;
    }
    const auto r = halving_race(arms, within(20), progress);
    EXPECT_EQ(r[1].failure, "");
    EXPECT_TRUE(r[0].timed());
  }
  munmap(page, 4096);
}

Field field_of(const std::vector<Arm>& finalists) {
  Field f;
  f.finalists = finalists.size();
  f.arm = [finalists](size_t i, const std::string&) { return finalists[i]; };
  return f;
}

TEST(Finals, TheVendorHasItsBestAndReadingIsNoContender) {
  Field f = field_of({simulated(4e-5), simulated(2e-5)});
  f.vendor_arms = {simulated(5e-5), failing("CUDA_ERROR_LAUNCH_FAILED"), simulated(3e-5), simulated(3.5e-5)};
  f.read_arm = simulated(1e-5); // faster than all of them
  Progress progress("test");
  const FinalsResult r = run_finals(f, within(20), progress);
  EXPECT_EQ(r.anchor, 0u);
  ASSERT_EQ(r.finalists.size(), 2u);
  EXPECT_GE(r.again.rounds.size(), 11u);
  EXPECT_NEAR(summarize(r.finalists[1], r.finalists[0], 1).ratio, 0.5, 1e-9);
  EXPECT_NEAR(summarize(r.vendor, r.finalists[1], 1).ratio, 1.5, 1e-9);
  EXPECT_NEAR(summarize(r.read, r.finalists[0], 1).seconds, 1e-5, 1e-12);
}

TEST(Finals, AVendorOrAReadArmThatFailsLeavesTheOthersAlone) {
  Field f = field_of({simulated(4e-5), simulated(2e-5)});
  f.vendor_arms = {failing("no algorithm")};
  f.read_arm = failing("not enough device memory");
  Progress progress("test");
  const FinalsResult r = run_finals(f, within(20), progress);
  EXPECT_TRUE(r.finalists[0].timed() && r.finalists[1].timed() && r.again.timed());
  EXPECT_EQ(r.vendor.detail, "no algorithm");
  EXPECT_FALSE(r.read.timed());
  f.vendor_arms.clear();
  EXPECT_FALSE(run_finals(f, within(20), progress).vendor.timed());
}

TEST(Finals, TheNextFinalistIsTheAnchorWhereTheFirstFails) {
  Field f = field_of({failing("CUDA_ERROR_ILLEGAL_ADDRESS"), simulated(2e-5), simulated(1e-5)});
  f.read_arm = simulated(1e-6);
  Progress progress("test");
  const FinalsResult r = run_finals(f, within(20), progress);
  EXPECT_EQ(r.anchor, 1u);
  EXPECT_TRUE(r.again.timed());
  EXPECT_NEAR(summarize(r.again, r.finalists[1], 1).ratio, 1, 1e-9);
  EXPECT_EQ(run_finals(field_of({failing("a"), failing("b")}), within(20), progress).anchor, 2u);
}

TEST(CudaVendor, FusesWhatCublasLtHas) {
  Gemm p = problem(Type::bf16, Type::bf16, 64, 64, 64);
  p.layout = Layout::nt;
  p.epilogue = {EpilogueOp::bias, EpilogueOp::gelu_tanh};
  VendorPlan plan = plan_vendor(p, true);
  EXPECT_TRUE(plan.fused_bias);
  EXPECT_EQ(plan.activation, LtFusion::gelu_tanh);
  EXPECT_FALSE(plan.separate());
  p.epilogue = {EpilogueOp::bias, EpilogueOp::gelu}; // the erf form: it has none
  plan = plan_vendor(p, true);
  EXPECT_TRUE(plan.fused_bias);
  EXPECT_EQ(plan.rest, std::vector<EpilogueOp>{EpilogueOp::gelu});
  EXPECT_EQ(plan.text(), "fused bias, then an elementwise kernel of ours for gelu");
  p.epilogue = {EpilogueOp::relu, EpilogueOp::bias}; // its bias comes before its activation
  plan = plan_vendor(p, true);
  EXPECT_EQ(plan.activation, LtFusion::relu);
  EXPECT_EQ(plan.rest, std::vector<EpilogueOp>{EpilogueOp::bias});
  EXPECT_EQ(plan_vendor(p, false).rest, p.epilogue);
}

TEST(Groups, RowsAreSharedInEveryWay) {
  Gemm p = problem(Type::bf16, Type::bf16, 64, 64, 64);
  for (int64_t m : {1, 2, 7, 64, 1000})
    for (int64_t groups : {1, 2, 5, 64, 1024})
      for (Sharing sharing : all_sharings)
        for (uint64_t seed : {1, 2}) {
          p.m = m, p.groups = groups;
          const std::vector<int32_t> offsets = group_offsets(p, sharing, seed);
          ASSERT_EQ(offsets.size(), size_t(groups) + 1);
          EXPECT_TRUE(std::is_sorted(offsets.begin(), offsets.end()));
          EXPECT_GE(offsets.front(), 0);
          EXPECT_LE(offsets.back(), m);
          EXPECT_LT(offsets.front(), offsets.back()) << m << " " << groups << " " << int(sharing);
          if (sharing == Sharing::sparse) continue;
          EXPECT_EQ(offsets.back() - offsets.front(), m);
        }
}

TEST(Groups, WhatIsTimedIsEvenAndSkewed) {
  Gemm p = problem(Type::bf16, Type::bf16, 4096, 64, 64);
  p.groups = 8;
  EXPECT_EQ(group_offsets(p, timed_sharing(0), 1),
            (std::vector<int32_t>{0, 512, 1024, 1536, 2048, 2560, 3072, 3584, 4096}));
  const std::vector<int32_t> offsets = group_offsets(p, timed_sharing(1), 1);
  std::vector<int32_t> rows;
  for (size_t g = 0; g < 8; ++g) rows.push_back(offsets[g + 1] - offsets[g]);
  EXPECT_FALSE(std::is_sorted(rows.begin(), rows.end())) << "the order is random";
  std::sort(rows.begin(), rows.end());
  // Shares of 1/2, ..., 1/9 of their sum: 4096 rows give 249 and 1120 on average.
  EXPECT_NEAR(rows.front(), 249, 60);
  EXPECT_NEAR(rows.back(), 1120, 120);
  EXPECT_NE(group_offsets(p, timed_sharing(1), 3), offsets);
}

TEST(Groups, OneGroupsOperandsAreAProblemOfTheirOwn) {
  Gemm p = problem(Type::bf16, Type::bf16, 64, 32, 16);
  p.groups = 4, p.epilogue = {EpilogueOp::bias, EpilogueOp::bias_row};
  CallOperands x;
  x.a = shape_of(64, 16, 20, 1, 0), x.b = shape_of(32, 16, 16, 4, 8), x.d = shape_of(64, 32, 32, 1, 0);
  x.a.type = x.b.type = x.d.type = int32_t(Type::bf16);
  x.a.data = 0x1000, x.b.data = 0x2000, x.d.data = 0x4000;
  for (EpilogueOp op : p.epilogue)
    x.step(op) = spread({.data = op == EpilogueOp::bias ? 0x5000u : 0x6000u}, operands_of(op, p)[0]);
  const CallOperands one = group_operands(p, x, 2, 10, 7);
  EXPECT_EQ(one.a.data, 0x1000u + 10 * 20 * 2);
  EXPECT_EQ(one.a.rows, 7);
  EXPECT_EQ(one.b.data, 0x2000u + 2 * (32 * 16 + 8) * 2);
  EXPECT_EQ(one.b.batch, 1);
  EXPECT_EQ(one.d.data, 0x4000u + 10 * 32 * 2);
  EXPECT_EQ(one.step(EpilogueOp::bias).data, 0x5000u + 2 * 32 * 2);
  EXPECT_EQ(one.step(EpilogueOp::bias_row).data, 0x6000u + 10 * 2);
  EXPECT_EQ(one.c.data, 0u);
  EXPECT_EQ(group_problem(p, 7).key(), "gemm m=7 n=32 k=16 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=" +
                                           to_string(p.layout) + " epilogue=bias+bias_row align=2");
}

TEST(CudaVendor, MultipliesBothWeightsOfAGateAtOnce) {
  Gemm p = problem(Type::bf16, Type::bf16, 64, 64, 64);
  p.gate = EpilogueOp::silu;
  p.epilogue = {EpilogueOp::bias};
  const VendorPlan plan = plan_vendor(p, true);
  EXPECT_TRUE(plan.scratch);
  EXPECT_FALSE(plan.fused_bias);
  EXPECT_EQ(plan.rest, p.epilogue);
  EXPECT_EQ(plan.text(), "an elementwise kernel of ours for the gate, bias");
}

TEST(CudaVendor, ItsWorkspacesAreLargerThanTheCache) {
  const int64_t memory = workspace_memory(int64_t(50) << 20);
  EXPECT_EQ(memory, int64_t(150) << 20);
  EXPECT_EQ(rotating_workspaces(64 << 20, memory), 2u);
  EXPECT_EQ(rotating_workspaces(1 << 20, memory), 150u);
  EXPECT_EQ(rotating_workspaces((1 << 20) + 1, memory), 149u) << "aligned";
  EXPECT_EQ(rotating_workspaces(16, memory), 1024u);
  EXPECT_EQ(rotating_workspaces(64 << 20, workspace_memory(1 << 20)), 2u);
}

TEST(CudaVendor, SaysWhatItCannot) {
  Gemm p = problem(Type::e4m3, Type::bf16, 64, 64, 64);
  p.layout = Layout::nn;
  EXPECT_NE(plan_vendor(p, true).why_not, "");
  p.layout = Layout::nt;
  EXPECT_EQ(plan_vendor(p, true).why_not, "");
  Gemm q = problem(Type::i8, Type::bf16, 64, 64, 64);
  EXPECT_TRUE(plan_vendor(q, true).scratch);
  EXPECT_EQ(plan_vendor(q, true).text(), "an elementwise kernel of ours for the conversion");
  q = problem(Type::i8, Type::i8, 64, 64, 64);
  EXPECT_FALSE(plan_vendor(q, true).separate());
  EXPECT_TRUE(plan_vendor(q, false).scratch);
  q.epilogue = {EpilogueOp::relu};
  EXPECT_TRUE(plan_vendor(q, true).scratch);
}

TEST(CudaBench, CachesAreAMatterOfGpus) {
  Device cpu;
  cpu.arch = "cpu", cpu.present = true;
  check_device(cpu, "device.json", Caches::cold);
  EXPECT_THROW(check_device(cpu, "device.json", Caches::warm), Error);
  EXPECT_EQ(environment(cpu, "", {}, {}, Caches::weights_cold)["profile"], "weights-cold-graph/1");
}

TEST(CudaBench, OneLockForAllUsersOfTheHost) {
  Device device;
  device.uuid = "GPU-test-" + std::to_string(getpid());
  const std::string path = "/tmp/deepgen-" + device.uuid;
  const mode_t old = umask(0077);
  std::optional<FileLock> held = FileLock::of_host(lock_name(device));
  umask(old);
  struct stat info = {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0444u);
  const int other = open(path.c_str(), O_RDONLY);
  EXPECT_NE(flock(other, LOCK_EX | LOCK_NB), 0);
  held.reset();
  EXPECT_EQ(flock(other, LOCK_EX | LOCK_NB), 0);
  close(other);
  held.emplace(FileLock::of_host(lock_name(device))); // a file that is there
  EXPECT_FALSE(FileLock::try_of_host(lock_name(device)));
  held.reset();
  unlink(path.c_str());
}

/// The device's code numbers types by itself.
TEST(CudaKernels, NumbersTypesAsTheHost) {
  const std::string source = read_file(paths::in_source("measure/gpu/toolbox/cuda_kernels.cu"));
  std::string types = "enum Type { ";
  for (int i = 0; i <= int(Type::i32); ++i) types += (i ? ", " : "") + to_string(Type(i));
  EXPECT_NE(source.find(types + " };"), std::string::npos);
}

} // namespace
} // namespace deepgen::cuda::cuda_measure_test
