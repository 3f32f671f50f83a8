// Kernels whose sizes only a call knows: random (problem, config, sizes of a call) of all GPU templates on
// the simulated device, and faults that a wrong size makes. Another sample: PTX_SIM_SEED=7
// PTX_SIM_RANGES=600.
#include "base/kernel/kernel_call.h"
#include "generator/codegen/compile.h"
#include "generator/space/sample.h"
#include "tests/ptx_sim/check/check.h"
#include "tests/ptx_sim/from_environment.h"
#include "tests/ptx_sim/machine/launch.h"
#include "tests/ptx_sim/machine/tensor_map.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

namespace deepgen::ranges_test {
namespace {

constexpr int kShares = 4, kCalls = 3; // and one with K 0

const std::vector<RandomCandidate>& samples() {
  static const std::vector<RandomCandidate> all = [] {
    SampleSpec spec;
    spec.archs = {"sm_80", "sm_89", "sm_90a"};
    spec.templates = {"simt", "mma_sync", "gemv", "hopper_ws"};
    spec.seed = from_environment("PTX_SIM_SEED", 5);
    spec.count = from_environment("PTX_SIM_RANGES", 72);
    spec.largest = 300;
    spec.most_flops = 1e7;
    spec.ranges = true;
    return draw_samples(spec);
  }();
  return all;
}

KernelFile compiled(const Gemm& p, const std::string& arch, const Choice& choice, bool awkward) {
  setenv("DEEPGEN_PTXAS", "none", 1); // the PTX is all that is wanted
  return compile_candidate(p, arch, choice, awkward, false);
}

std::string text(const Sizes& x) {
  return "m=" + std::to_string(x.m) + " n=" + std::to_string(x.n) + " k=" + std::to_string(x.k) +
         " batch=" + std::to_string(x.batch);
}

void check(const Kernel& kernel, std::mt19937_64& random, uint64_t seed) {
  const Gemm& p = kernel.problem.gemm();
  const std::vector<Sizes> calls = draw_calls(p, random, kCalls);
  for (size_t call = 0; call < calls.size(); ++call) {
    const Sizes& sizes = calls[call];
    const Kernel k = kernel_in_call(kernel, sizes);
    const auto cases = ptx_sim::chosen_cases(k.problem.gemm(), seed);
    EXPECT_LE(k.workspace, kernel.workspace);
    EXPECT_EQ(ptx_sim::check_case(k, cases[call % cases.size()], seed).fault, "")
        << "case '" << cases[call % cases.size()].name << "', seed " << seed << ", " << kernel.role << ", "
        << text(sizes) << ": " << p.key() << " | " << kernel.choice.text();
  }
}

/// A quarter of them each, so that ctest runs them in parallel.
class RandomTriples : public testing::TestWithParam<int> {};

TEST_P(RandomTriples, AreRightOnTheSimulatedDevice) {
  size_t checked = 0;
  for (size_t i = size_t(GetParam()); i < samples().size(); i += kShares) {
    const RandomCandidate& s = samples()[i];
    std::mt19937_64 random(i);
    const KernelFile file = compiled(s.problem.gemm(), s.arch, s.choice, true);
    ASSERT_EQ(file.status, "ok") << file.detail << ": " << s.problem.key() << " | " << s.choice.text();
    for (const Kernel& kernel : file.kernels) {
      EXPECT_TRUE(kernel.problem.gemm().ranged());
      EXPECT_EQ(kernel.workspace,
                find_template(kernel.choice.template_name).workspace(kernel.problem, kernel.choice.config))
          << kernel.problem.key() << " | " << kernel.choice.text();
      EXPECT_EQ(KernelFile::parse(file.serialize(), "").kernels.at(checked % 1).launches,
                file.kernels.at(0).launches);
      check(kernel, random, i);
      ++checked;
    }
  }
  EXPECT_GE(checked, samples().size() / kShares);
}
INSTANTIATE_TEST_SUITE_P(Share, RandomTriples, testing::Range(0, kShares));

/// A kernel and a call of it, in which every part of the code matters that asks for M.
struct Faulty {
  const char *name, *problem, *choice;
};

const Faulty kFaulty[] = {
    {"simt", "gemm m=1..100 n=40 k=24 batch=3 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=bias align=4",
     "simt wide=1 bm=32 bn=32 bk=8 tm=2 tn=4 stages=3 blocks=1 splits=1 group=1"},
    {"mma_sync",
     "gemm m=1..100 n=40 k=72 batch=3 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=residual align=2",
     "mma_sync bm=32 bn=32 bk=64 warps_m=2 warps_n=2 warps_k=1 stages=3 blocks=1 splits=1 group=4 pdl=1 "
     "align_a=16 align_b=16 align_d=16"},
    {"hopper_ws",
     "gemm m=1..200 n=64 k=128 batch=3 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=none align=2",
     "hopper_ws bm=64 bn=64 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0 cluster_m=1 "
     "cluster_n=1 "
     "cluster_k=1 splits=1 stream_k=0 group=1 pdl=1 align_a=16 align_b=16 align_d=16"},
};
constexpr Sizes kCall{37, 0, 150, 3};
constexpr size_t kMapBytes = 128;

/// The same of K. Rows of A and B lie along M and N, so that a row too many is of nobody.
const Faulty kFaultyK[] = {
    {"simt", "gemm m=40 n=40 k=1..400 batch=3 a=f32 b=f32 d=f32 acc=f32 layout=tn epilogue=bias align=4",
     "simt wide=1 bm=32 bn=32 bk=8 tm=2 tn=4 stages=3 blocks=1 splits=2 group=1"},
    {"mma_sync",
     "gemm m=72 n=40 k=1..400 batch=3 a=bf16 b=bf16 d=bf16 acc=f32 layout=tn epilogue=residual align=2",
     "mma_sync bm=32 bn=32 bk=64 warps_m=2 warps_n=2 warps_k=1 stages=3 blocks=1 splits=1 group=4 pdl=1 "
     "align_a=16 align_b=16 align_d=16"},
    {"gemv", "gemm m=4 n=64 k=1..400 batch=3 a=f32 b=f32 d=f32 acc=f32 layout=tn epilogue=none align=4",
     "gemv form=0 vec=16 width=64 rwarps=1 kwarps=2 unroll=2 splits=1 hint=1 pipe=1 pdl=0"},
    {"hopper_ws",
     "gemm m=64 n=64 k=1..400 batch=3 a=bf16 b=bf16 d=bf16 acc=f32 layout=tn epilogue=none align=2",
     "hopper_ws bm=64 bn=64 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0 cluster_m=1 "
     "cluster_n=1 "
     "cluster_k=1 splits=1 stream_k=0 group=1 pdl=1 align_a=16 align_b=16 align_d=16"},
    // Calls of fewer tiles of K than splits.
    {"hopper_ws_splits",
     "gemm m=64 n=64 k=1..1600 batch=3 a=bf16 b=bf16 d=bf16 acc=f32 layout=tn epilogue=none align=2",
     "hopper_ws bm=64 bn=64 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0 cluster_m=1 "
     "cluster_n=1 "
     "cluster_k=1 splits=3 stream_k=0 group=1 pdl=1 align_a=16 align_b=16 align_d=16"},
    {"mma_sync_splits",
     "gemm m=72 n=40 k=1..1600 batch=3 a=bf16 b=bf16 d=bf16 acc=f32 layout=tn epilogue=residual align=2",
     "mma_sync bm=32 bn=32 bk=64 warps_m=2 warps_n=2 warps_k=1 stages=3 blocks=1 splits=3 group=4 pdl=1 "
     "align_a=16 align_b=16 align_d=16"},
};

class RangeFaults : public testing::TestWithParam<Faulty> {
protected:
  void SetUp() override {
    const Gemm p = Gemm::parse(GetParam().problem);
    const std::string choice = GetParam().choice;
    const size_t name = choice.find(' ');
    const KernelFile file =
        compiled(p, "sm_90a", {choice.substr(0, name), Config::parse(choice.substr(name + 1))}, false);
    ASSERT_EQ(file.status, "ok") << file.detail;
    largest_ = file.kernels.at(0);
    sizes_ = {p.ranged(Size::m) ? kCall.m : p.m, p.n, p.ranged(Size::k) ? kCall.k : p.k, kCall.batch};
    call_ = kernel_in_call(largest_, sizes_);
  }

  /// What is found when launches get other arguments than the call's; the first case's.
  std::string fault(const std::function<void(const std::string& name, std::vector<uint8_t>&)>& change,
                    const Kernel& call) const {
    const auto run = [&](const Launch& l, const std::vector<std::vector<uint8_t>>& arguments,
                         ptx_sim::GlobalMemory& memory, uint64_t seed) {
      std::vector<std::vector<uint8_t>> changed = arguments;
      for (size_t i = 0; i < changed.size(); ++i) change(call.args[i], changed[i]);
      ptx_sim::run_launch(call.ptx, {l.entry, l.grid, l.block, l.cluster, l.shared, l.dependent}, changed,
                          memory, seed);
    };
    return ptx_sim::check_case(call, ptx_sim::chosen_cases(call.problem.gemm(), 1)[0], 1, run).fault;
  }
  static void nothing(const std::string&, std::vector<uint8_t>&) {}
  /// Of a call whose kernel is told another size than the call's.
  std::string fault_of(Size size, int64_t told) const {
    const auto other = [&](const std::string& name, std::vector<uint8_t>& bytes) {
      if (name == size_names[size_t(size)]) std::memcpy(bytes.data(), &told, sizeof told);
    };
    return fault(other, call_);
  }
  /// The same of one whose tensor map ends elsewhere, and that of its last boxes, where it has one.
  std::string fault_of_map(const std::string& map_name, size_t dimension, int64_t told) const {
    const auto other = [&](const std::string& argument, std::vector<uint8_t>& bytes) {
      if (argument != map_name) return;
      for (size_t at = 0; at < bytes.size(); at += kMapBytes) {
        ptx_sim::SimulatedMap map;
        std::memcpy(&map, bytes.data() + at, sizeof map);
        map.sizes[dimension] = uint64_t(told);
        std::memcpy(bytes.data() + at, &map, sizeof map);
      }
    };
    return fault(other, call_);
  }

  Kernel largest_, call_;
  Sizes sizes_;
};

TEST_P(RangeFaults, AreNotInTheKernelItself) { EXPECT_EQ(fault(nothing, call_), ""); }

TEST_P(RangeFaults, OfAnotherMAreFound) {
  for (const int64_t m : {sizes_.m - 1, sizes_.m + 1, largest_.problem.gemm().m}) {
    // hopper_ws asks for M where it counts tiles alone: one more row may be of the same ones.
    const bool same_tiles =
        call_.choice.template_name == "hopper_ws" && (m + 63) / 64 == (sizes_.m + 63) / 64;
    if (same_tiles) continue;
    EXPECT_NE(fault_of(Size::m, m), "") << "m=" << m << " in a call of m=" << sizes_.m;
  }
}

TEST_P(RangeFaults, OfAnotherGridAreFound) {
  if (call_.launches.back().persistent) GTEST_SKIP() << "blocks walk over all tiles, as many as there are";
  Kernel less = call_;
  less.launches.back().grid[0] -= less.launches.back().cluster[0];
  EXPECT_NE(fault(nothing, less), "") << "a block too few";
  Kernel most = call_;
  most.launches.back().grid = largest_.launches.back().grid;
  EXPECT_NE(fault(nothing, most), "") << "the largest call's grid";
}

TEST_P(RangeFaults, OfATensorMapOfAnotherMAreFound) {
  if (call_.maps.empty()) GTEST_SKIP() << "it has no tensor maps";
  for (const char* name : {"map_a", "map_d"})
    EXPECT_NE(fault_of_map(name, 1, largest_.problem.gemm().m), "") << name;
}

class DepthFaults : public RangeFaults {};

TEST_P(DepthFaults, AreNotInTheKernelItself) {
  EXPECT_EQ(fault(nothing, call_), "");
  for (const int64_t k : {0, 1, 63, 64, 65, 127, 129, 399, 400}) {
    sizes_.k = k;
    const Kernel call = kernel_in_call(largest_, sizes_);
    EXPECT_EQ(fault(nothing, call), "") << "k=" << k;
  }
}

TEST_P(DepthFaults, OfAnotherKAreFound) {
  // TMA gives zeros beyond K: too many tiles make no difference to hopper_ws, nor does a part of one.
  const bool by_maps = !call_.maps.empty();
  for (const int64_t k : {int64_t(0), sizes_.k - 64, sizes_.k - 1, sizes_.k + 1, largest_.problem.gemm().k}) {
    if (by_maps && k + 64 > sizes_.k) continue;
    EXPECT_NE(fault_of(Size::k, k), "") << "k=" << k << " in a call of k=" << sizes_.k;
  }
}

TEST_P(DepthFaults, OfATensorMapOfAnotherKAreFound) {
  if (call_.maps.empty()) GTEST_SKIP() << "it has no tensor maps";
  for (const char* name : {"map_a", "map_b"})
    for (const int64_t k : {sizes_.k - 1, sizes_.k + 1, largest_.problem.gemm().k})
      EXPECT_NE(fault_of_map(name, 1, k), "") << name << " of k=" << k;
}

INSTANTIATE_TEST_SUITE_P(Of, DepthFaults, testing::ValuesIn(kFaultyK),
                         [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(Of, RangeFaults, testing::ValuesIn(kFaulty),
                         [](const auto& info) { return std::string(info.param.name); });

} // namespace
} // namespace deepgen::ranges_test
