// The sum over K in a cluster (cluster_k) on the simulated device: for each way to tile and to store, for
// blocks with one tile and with many, as partial sums lie where the stages of the next tile will.
#include "templates/nvidia/hopper_ws/hopper_ws.h"
#include "tests/ptx_sim/check/check.h"
#include "tests/ptx_sim/hopper_ws/hopper_kernel.h"

#include <cstring>
#include <set>

namespace deepgen::cluster_sum_test {
namespace {

const HopperPair kPairs[] = {
    {"larger_than_the_ring",
     "gemm m=300 n=250 k=540 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=bias+relu align=2",
     "bm=128 bn=128 slices=1 stages=2 consumers=2 pingpong=0 swap=0 promote=0",
     "cluster_m=1 cluster_n=1 cluster_k=2", "pdl=0 align_a=8 align_b=8 align_d=4"},
    {"smaller_than_the_ring",
     "gemm m=150 n=100 k=1040 batch=3 a=f16 b=f16 d=f32 acc=f32 layout=nt epilogue=none align=2",
     "bm=64 bn=48 slices=1 stages=5 consumers=1 pingpong=0 swap=0 promote=0",
     "cluster_m=1 cluster_n=1 cluster_k=3", "pdl=2 align_a=16 align_b=16 align_d=16"},
    {"shared_loads",
     "gemm m=500 n=200 k=520 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nn epilogue=residual align=2",
     "bm=64 bn=128 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0",
     "cluster_m=2 cluster_n=2 cluster_k=2", "pdl=1 align_a=16 align_b=16 align_d=16"},
    {"gated",
     "gemm m=200 n=192 k=520 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt gate=silu epilogue=none align=2",
     "bm=64 bn=64 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0",
     "cluster_m=2 cluster_n=1 cluster_k=2", "pdl=0 align_a=16 align_b=16 align_d=16"},
    {"swapped", "gemm m=60 n=900 k=1100 batch=1 a=i8 b=i8 d=i32 acc=i32 layout=nt epilogue=none align=1",
     "bm=128 bn=32 slices=1 stages=3 consumers=2 pingpong=0 swap=1 promote=0",
     "cluster_m=1 cluster_n=2 cluster_k=2", "pdl=0 align_a=16 align_b=16 align_d=8"},
};

Kernel compile(const HopperPair& x) {
  return compile_hopper(x.problem,
                        std::string(x.tile) + " " + x.cluster + " splits=1 stream_k=0 group=2 " + x.rest);
}

std::string fault_of(const Kernel& kernel, uint64_t seed) {
  return ptx_sim::check_case(kernel, cuda::call_cases(kernel.problem.gemm()).back(), seed).fault;
}

class ClusterSum : public testing::TestWithParam<HopperPair> {};

/// The simulated device runs 1 to 6 clusters, by the seed: of these tiles some have many.
TEST_P(ClusterSum, IsRightForAnyNumberOfBlocks) {
  const Kernel kernel = compile(GetParam());
  const HopperTiling t(kernel.problem.gemm(), kernel.choice.config);
  EXPECT_EQ(t.partials.bytes > t.stages * t.stage_bytes,
            GetParam().name == std::string("larger_than_the_ring"));
  EXPECT_GE(t.work(kernel.problem.gemm()), 4);
  for (uint64_t seed = 0; seed < 6; ++seed) EXPECT_EQ(fault_of(kernel, seed), "") << "seed " << seed;
}
INSTANTIATE_TEST_SUITE_P(Kernels, ClusterSum, testing::ValuesIn(kPairs),
                         [](const auto& info) { return info.param.name; });

/// More of them: PTX_SIM_CLUSTER_SUM=100 PTX_SIM_SEED=7.
TEST(ClusterSumAtRandom, IsRight) {
  std::mt19937_64 random(from_environment("PTX_SIM_SEED", 3));
  const auto draw = [&] {
    Gemm p = Gemm::parse(kPairs[size_t(random() % std::size(kPairs))].problem);
    draw_shape(p, {}, random); // with its epilogue
    p.m = 1 + int64_t(random() % 400), p.n = 1 + int64_t(random() % 400), p.k = 400 + int64_t(random() % 800);
    p.batch = 1 + int64_t(random() % 2), p.groups = 0;
    return p;
  };
  const auto wanted = [](const Gemm&, const Config& config) { return config["cluster_k"] > 1; };
  check_at_random(from_environment("PTX_SIM_CLUSTER_SUM", 6), generic_gpu("sm_90a"), random, draw, wanted,
                  [&](const Kernel& kernel) {
                    const uint64_t seed = random() % 6;
                    EXPECT_EQ(fault_of(kernel, seed), "") << "seed " << seed;
                  });
}

/// Which one of the numbers of blocks shows.
std::string fault_of(const Kernel& kernel) {
  for (uint64_t seed = 0; seed < 6; ++seed)
    if (const std::string fault = fault_of(kernel, seed); !fault.empty()) return fault;
  return "";
}

constexpr const char *kRelease = "barrier.cluster.arrive.release;",
                     *kAcquire = "barrier.cluster.wait.acquire;";

/// Without those of these numbers, counted from 0; there are four.
std::string without(std::string text, const std::string& what, const std::set<int>& numbers) {
  int number = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at), ++number)
    if (numbers.count(number))
      text.erase(at, what.size());
    else
      at += what.size();
  EXPECT_EQ(number, 4) << what;
  return text;
}

TEST(ClusterSumIsChecked, PlantedFaultsAreFound) {
  const Kernel right = compile(kPairs[0]);
  Kernel wrong = right;
  wrong.ptx = with(right.ptx, R"(bar\.sync\s+\S+ 256;)", "");
  EXPECT_NE(fault_of(wrong).find("race"), std::string::npos)
      << "sums overwrite stages that the other warpgroup still multiplies";
  wrong.ptx = with(right.ptx, R"(fence\.proxy\.async[^;]*;)", "");
  EXPECT_NE(fault_of(wrong).find("fence.proxy.async"), std::string::npos) << "copies overtake sums";
  wrong.ptx = with(with(right.ptx, kRelease, ""), kAcquire, "");
  EXPECT_NE(fault_of(wrong).find("race"), std::string::npos) << "sums are read before they are there";
  // In the text: the consumers' first and second release, then the producer's. Their second acquire ends a
  // turn of a loop, and is the first of all.
  const size_t reads = right.ptx.find("ld.shared::cluster"), ended = right.ptx.find(kAcquire);
  ASSERT_TRUE(right.ptx.find(kRelease) < reads && reads < right.ptx.rfind(kRelease) &&
              ended < right.ptx.find(kRelease));
  wrong.ptx = without(without(right.ptx, kRelease, {1, 3}), kAcquire, {0, 3});
  bool race = false; // where a block has more than one tile
  for (uint64_t seed = 0; seed < 6; ++seed) race |= fault_of(wrong, seed).find("race") != std::string::npos;
  EXPECT_TRUE(race) << "the next tile's stages overwrite sums: " << fault_of(wrong);
  wrong.ptx = without(without(right.ptx, kRelease, {1}), kAcquire, {0});
  EXPECT_NE(fault_of(wrong), "") << "the producer waits for ever";
}

/// Sums of rows beyond D: nothing waits for them but the release behind the loads. On an H200 a block that
/// had ended was "not present" for the loads of others.
TEST(ClusterSumIsChecked, ABlockThatEndsBeforeItsSumsAreReadIsFound) {
  HopperPair one_tile = kPairs[0];
  const std::string problem = with(one_tile.problem, "m=300 n=250", "m=100 n=100");
  one_tile.problem = problem.c_str();
  Kernel wrong = compile(one_tile);
  EXPECT_EQ(fault_of(wrong), "");
  wrong.ptx.replace(wrong.ptx.find(kRelease, wrong.ptx.rfind("ld.shared::cluster")), std::strlen(kRelease),
                    "barrier.cluster.arrive.relaxed;");
  EXPECT_NE(fault_of(wrong).find("loads from another block may be under way"), std::string::npos)
      << fault_of(wrong);
}

/// Without sums each block waits until the others have said that its stages are read.
TEST(Clusters, ABlockThatDoesNotWaitForTheOthersIsFound) {
  const Kernel right = compile_hopper(
      "gemm m=500 n=200 k=520 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nn epilogue=none align=2",
      "bm=64 bn=128 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0 cluster_m=2 cluster_n=2 "
      "cluster_k=1 splits=1 stream_k=0 group=2 pdl=1 align_a=16 align_b=16 align_d=16");
  EXPECT_EQ(fault_of(right), "");
  const std::regex wait(R"(\{\s*\.reg \.pred done; again: mbarrier\.try_wait[^}]*\})");
  std::vector<std::string> faults;
  for (std::sregex_iterator i(right.ptx.begin(), right.ptx.end(), wait), end; i != end; ++i) {
    Kernel wrong = right;
    wrong.ptx.erase(size_t(i->position()), size_t(i->length()));
    faults.push_back(fault_of(wrong));
  }
  ASSERT_EQ(faults.size(), 3u) << "for a full stage, for an empty one, and for all at the end";
  size_t ended = 0;
  for (const std::string& fault : faults) {
    EXPECT_NE(fault, "");
    ended += fault.find("after all its threads have ended") != std::string::npos;
  }
  EXPECT_EQ(ended, 1u) << faults[0] << "\n" << faults[1] << "\n" << faults[2];
}

/// A plan may be written by hand: the kernel would wait for ever.
TEST(Clusters, RefuseTilesThatTheyCannotShare) {
  const Config narrow = Config::parse(
      "bm=64 bn=64 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0 cluster_m=2 cluster_n=1 "
      "cluster_k=1 splits=1 stream_k=0 group=2 pdl=1 align_a=16 align_b=16 align_d=16");
  const Gemm p = Gemm::parse(kPairs[2].problem); // columns of B lie side by side: 64 are one copy
  const KernelFile file = compile_candidate(p, "sm_90a", {"hopper_ws", narrow}, false, false);
  EXPECT_EQ(file.status, "failed");
  EXPECT_NE(file.detail.find("2 blocks of a cluster cannot share 64 rows"), std::string::npos) << file.detail;
}

} // namespace
} // namespace deepgen::cluster_sum_test
