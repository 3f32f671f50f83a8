// Stream-K on the simulated device: with whole waves and parts of one, for each way to tile and to store; and
// with configs at random, more of them by PTX_SIM_STREAM_K=100 PTX_SIM_SEED=7.
#include "templates/nvidia/hopper_ws/hopper_ws.h"
#include "tests/ptx_sim/check/check.h"
#include "tests/ptx_sim/hopper_ws/hopper_kernel.h"

#include <gtest/gtest.h>

namespace deepgen::stream_k_test {
namespace {

const HopperPair kPairs[] = {
    {"cooperative",
     "gemm m=300 n=130 k=540 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=bias+relu align=2",
     "bm=128 bn=64 slices=1 stages=3 consumers=2 pingpong=0 swap=0 promote=0", "cluster_m=1 cluster_n=1",
     "pdl=0 align_a=8 align_b=8 align_d=4"},
    {"pingpong", "gemm m=200 n=144 k=520 batch=1 a=f16 b=f16 d=f32 acc=f32 layout=nt epilogue=none align=2",
     "bm=64 bn=48 slices=1 stages=3 consumers=2 pingpong=1 swap=0 promote=0", "cluster_m=1 cluster_n=1",
     "pdl=0 align_a=16 align_b=16 align_d=16"},
    {"clusters",
     "gemm m=250 n=200 k=512 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nn epilogue=residual align=2",
     "bm=64 bn=64 slices=1 stages=2 consumers=1 pingpong=0 swap=0 promote=0", "cluster_m=1 cluster_n=2",
     "pdl=2 align_a=16 align_b=16 align_d=16"},
    {"pingpong_clusters",
     "gemm m=384 n=96 k=576 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=none align=2",
     "bm=64 bn=32 slices=1 stages=4 consumers=2 pingpong=1 swap=0 promote=0", "cluster_m=2 cluster_n=1",
     "pdl=0 align_a=16 align_b=16 align_d=16"},
    {"batch", "gemm m=100 n=72 k=600 batch=3 a=e4m3 b=e4m3 d=bf16 acc=f32 layout=nt epilogue=scale_a align=1",
     "bm=64 bn=72 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=1", "cluster_m=1 cluster_n=1",
     "pdl=1 align_a=8 align_b=8 align_d=16"},
    {"gated",
     "gemm m=200 n=96 k=520 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt gate=silu epilogue=none align=2",
     "bm=64 bn=64 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0", "cluster_m=1 cluster_n=1",
     "pdl=0 align_a=16 align_b=16 align_d=16"},
    {"swapped", "gemm m=60 n=450 k=1100 batch=1 a=i8 b=i8 d=i32 acc=i32 layout=nt epilogue=none align=1",
     "bm=64 bn=32 slices=1 stages=3 consumers=1 pingpong=0 swap=1 promote=0", "cluster_m=1 cluster_n=1",
     "pdl=0 align_a=4 align_b=4 align_d=8"},
};

std::string config_of(const HopperPair& x, int64_t stream_k) {
  return std::string(x.tile) + " " + x.cluster +
         " cluster_k=1 splits=1 stream_k=" + std::to_string(stream_k) + " group=2 " + x.rest;
}

Kernel compile(const HopperPair& x, int64_t stream_k = 1) {
  return compile_hopper(x.problem, config_of(x, stream_k));
}

/// The fault that one of the numbers of blocks shows.
std::string fault_of(const Kernel& kernel) {
  const cuda::CallCase c = cuda::call_cases(kernel.problem.gemm()).back();
  for (uint64_t seed = 1; seed < 5; ++seed)
    if (const std::string fault = ptx_sim::check_case(kernel, c, seed).fault; !fault.empty()) return fault;
  return "";
}

class StreamK : public testing::TestWithParam<std::tuple<HopperPair, int64_t>> {};

/// The simulated device runs 1 to 6 clusters, by the seed; one has no other to share with.
TEST_P(StreamK, IsRightForAnyNumberOfBlocks) {
  const Kernel kernel = compile(std::get<0>(GetParam()), std::get<1>(GetParam()));
  EXPECT_EQ(kernel.launches.front().entry, "deepgen_clear");
  const cuda::CallCase c = cuda::call_cases(kernel.problem.gemm()).back();
  for (uint64_t seed = 0; seed < 5; ++seed)
    EXPECT_EQ(ptx_sim::check_case(kernel, c, seed).fault, "") << "seed " << seed;
  Kernel wrong = kernel;
  wrong.launches.erase(wrong.launches.begin());
  EXPECT_NE(fault_of(wrong).find("nobody has cleared"), std::string::npos)
      << "so that parts of tiles there are";
}
INSTANTIATE_TEST_SUITE_P(Kernels, StreamK, testing::Combine(testing::ValuesIn(kPairs), testing::Values(1, 2)),
                         [](const auto& info) {
                           return std::get<0>(info.param).name +
                                  ("_" + std::to_string(std::get<1>(info.param)));
                         });

TEST(StreamKAtRandom, IsRight) {
  std::mt19937_64 random(from_environment("PTX_SIM_SEED", 5));
  Device small = generic_gpu("sm_90a");
  small.cores = 4; // as the simulated one, so that few tiles are several waves
  const auto draw = [&] {
    Gemm p = Gemm::parse(kPairs[size_t(random() % std::size(kPairs))].problem);
    draw_shape(p, {}, random); // with its epilogue; these sizes have several tiles of K and of D
    p.m = 1 + int64_t(random() % 400), p.n = 1 + int64_t(random() % 400), p.k = 400 + int64_t(random() % 300);
    p.batch = 1 + int64_t(random() % 2), p.groups = 0;
    return p;
  };
  const auto wanted = [](const Gemm&, const Config& config) { return config["stream_k"] != 0; };
  check_at_random(
      from_environment("PTX_SIM_STREAM_K", 6), small, random, draw, wanted, [&](const Kernel& kernel) {
        const uint64_t seed = 1 + random() % 4;
        EXPECT_EQ(ptx_sim::check_case(kernel, cuda::call_cases(kernel.problem.gemm()).back(), seed).fault, "")
            << "seed " << seed;
      });
}

/// On the device, too, what is verified has tiles that are shared.
TEST(StreamKIsChecked, TheAwkwardShapeHasMoreThanAWave) {
  for (const HopperPair& x : kPairs)
    for (const int64_t stream_k : {1, 2}) { // and so many whole waves
      const Gemm p = Gemm::parse(x.problem);
      const Config config = Config::parse(config_of(x, stream_k));
      const Gemm awkward = find_template("hopper_ws").awkward(p, config).gemm();
      const HopperTiling t(awkward, config);
      const int64_t blocks = t.work(awkward) * t.cluster();
      EXPECT_TRUE(blocks > 132 * stream_k && blocks < 132 * (stream_k + 1)) << x.name << ": " << blocks;
      EXPECT_GE(t.tiles_k, 12) << x.name;
      EXPECT_LT(awkward.flops(), cuda::CheckBudget().all_cases) << x.name;
    }
}

class StreamKFaults : public testing::TestWithParam<int64_t> {};

TEST_P(StreamKFaults, AreFound) {
  const Kernel right = compile(kPairs[0], GetParam());
  Kernel wrong = right;
  wrong.ptx = with(right.ptx, R"(st\.release\.gpu\.global\.b32[^;]*;)", "");
  EXPECT_NE(fault_of(wrong).find("deadlock"), std::string::npos);
  wrong.ptx = with(right.ptx, R"(again: ld\.acquire\.gpu\.global[^}]*@!done bra again;)", "");
  EXPECT_NE(fault_of(wrong), "") << "sums are read before they are there";
  wrong.ptx = with(right.ptx, R"(griddepcontrol\.wait;)", "");
  EXPECT_NE(fault_of(wrong).find("griddepcontrol.wait"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Orders, StreamKFaults, testing::Values(1, 2));

} // namespace
} // namespace deepgen::stream_k_test
