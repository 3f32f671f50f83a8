// Kernels of hopper_ws whose blocks have a tile each, on the simulated device: for each way to tile and to
// store, in every call that verification makes.
#include "templates/nvidia/hopper_ws/hopper_ws.h"
#include "tests/ptx_sim/check/check.h"
#include "tests/ptx_sim/hopper_ws/hopper_kernel.h"

#include <gtest/gtest.h>

namespace deepgen::one_tile_test {
namespace {

constexpr const char* kPlain = "cluster_m=1 cluster_n=1";
constexpr const char* kRest = "pdl=2 align_a=16 align_b=16 align_d=16";

const HopperPair kPairs[] = {
    {"plain", "gemm m=200 n=152 k=200 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=none align=2",
     "bm=64 bn=128 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0", kPlain, kRest},
    {"shorter_than_the_ring",
     "gemm m=130 n=96 k=72 batch=2 a=f16 b=f16 d=f32 acc=f32 layout=nn epilogue=bias+gelu align=2",
     "bm=64 bn=64 slices=1 stages=4 consumers=1 pingpong=0 swap=0 promote=0", kPlain, kRest},
    {"two_consumers",
     "gemm m=296 n=136 k=136 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=tn epilogue=bias_row align=2",
     "bm=128 bn=64 slices=1 stages=3 consumers=2 pingpong=0 swap=0 promote=0", kPlain, kRest},
    {"many_sums", "gemm m=250 n=264 k=72 batch=1 a=f16 b=f16 d=f16 acc=f32 layout=nt epilogue=relu align=2",
     "bm=128 bn=256 slices=1 stages=2 consumers=2 pingpong=0 swap=0 promote=0", kPlain, kRest},
    {"swapped_clusters_in_turn",
     "gemm m=150 n=504 k=504 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=none align=2",
     "bm=128 bn=80 slices=1 stages=3 consumers=2 pingpong=1 swap=1 promote=0", "cluster_m=2 cluster_n=2",
     kRest},
    {"reads",
     "gemm m=250 n=136 k=136 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=bias+residual align=2",
     "bm=64 bn=64 slices=2 stages=2 consumers=1 pingpong=0 swap=0 promote=0", kPlain, kRest},
    {"gated",
     "gemm m=150 n=96 k=136 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt gate=silu epilogue=none align=2",
     "bm=64 bn=64 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0", kPlain, kRest},
    {"promoted", "gemm m=150 n=96 k=320 batch=1 a=e4m3 b=e4m3 d=bf16 acc=f32 layout=nt epilogue=none align=1",
     "bm=128 bn=48 slices=1 stages=3 consumers=2 pingpong=0 swap=0 promote=1", kPlain, kRest},
    {"integers", "gemm m=100 n=160 k=208 batch=1 a=i8 b=i8 d=i32 acc=i32 layout=nt epilogue=none align=1",
     "bm=64 bn=64 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0", kPlain, kRest},
    {"packed", "gemm m=101 n=67 k=93 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=bias align=2",
     "bm=64 bn=32 slices=1 stages=2 consumers=1 pingpong=0 swap=0 promote=0", kPlain,
     "pdl=2 align_a=2 align_b=2 align_d=2"},
    {"by_threads",
     "gemm m=200 n=136 k=264 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=bias align=2",
     "bm=64 bn=32 slices=2 stages=2 consumers=1 pingpong=0 swap=0 promote=0", kPlain, kRest},
    {"swapped_by_threads",
     "gemm m=90 n=200 k=136 batch=2 a=f16 b=f16 d=f16 acc=f32 layout=nt epilogue=none align=2",
     "bm=64 bn=32 slices=1 stages=3 consumers=1 pingpong=0 swap=1 promote=0", kPlain, kRest},
};

Kernel compile(const HopperPair& x) {
  return compile_one_tile(x.problem, std::string(x.tile) + " " + x.cluster +
                                         " cluster_k=1 splits=1 stream_k=0 group=2 " + x.rest);
}

std::string fault_of(const Kernel& kernel) {
  uint64_t seed = 0;
  for (const cuda::CallCase& c : cuda::call_cases(kernel.problem.gemm()))
    if (const std::string fault = ptx_sim::check_case(kernel, c, ++seed).fault; !fault.empty())
      return std::string(c.name) + ": " + fault;
  return "";
}

bool has(const Kernel& kernel, const char* what) { return kernel.ptx.find(what) != std::string::npos; }

class OneTile : public testing::TestWithParam<HopperPair> {};

TEST_P(OneTile, IsRightInEveryCall) {
  const Kernel kernel = compile(GetParam());
  const HopperTiling t(kernel.problem.gemm(), kernel.choice.config);
  const std::string name = GetParam().name;
  EXPECT_EQ(find_template("hopper_ws").revision_for(kernel.problem, kernel.choice.config), 9);
  EXPECT_EQ(t.once(kernel.problem.gemm()), name != "packed");
  EXPECT_EQ(has(kernel, "%nctaid"), name == "packed") << "blocks walk from tile to tile";
  EXPECT_EQ(t.scales_at_once(kernel.problem.gemm()), name != "gated" && name != "many_sums");
  EXPECT_EQ(t.staging.by_threads, name.ends_with("by_threads"));
  EXPECT_EQ(has(kernel, "cp.async.bulk.tensor.2d.global") || has(kernel, "cp.async.bulk.tensor.3d.global"),
            t.stores_tiles());
  EXPECT_EQ(kernel.launches.back().persistent, name == "packed");
  EXPECT_EQ(fault_of(kernel), "");
}
INSTANTIATE_TEST_SUITE_P(Kernels, OneTile, testing::ValuesIn(kPairs),
                         [](const auto& info) { return info.param.name; });

/// More of them: PTX_SIM_ONE_TILE=100 PTX_SIM_SEED=7.
TEST(OneTileAtRandom, IsRight) {
  std::mt19937_64 random(from_environment("PTX_SIM_SEED", 4));
  const auto draw = [&] {
    Gemm p = Gemm::parse(kPairs[size_t(random() % std::size(kPairs))].problem);
    draw_shape(p, {}, random); // with its epilogue
    p.m = 1 + int64_t(random() % 400), p.n = 1 + int64_t(random() % 400), p.k = 1 + int64_t(random() % 300);
    p.batch = 1 + int64_t(random() % 2), p.groups = 0;
    return p;
  };
  const auto wanted = [](const Gemm& p, const Config& config) { return HopperTiling(p, config).one_tile(p); };
  check_at_random(
      from_environment("PTX_SIM_ONE_TILE", 8), generic_gpu("sm_90a"), random, draw, wanted,
      [](const Kernel& kernel) { EXPECT_EQ(fault_of(kernel), ""); }, compile_one_tile);
}

TEST(OneTileIsChecked, PlantedFaultsAreFound) {
  const Kernel right = compile(kPairs[0]);
  Kernel wrong = right;
  wrong.ptx = with(right.ptx, R"(fence\.proxy\.async[^;]*;)", "");
  EXPECT_NE(fault_of(wrong), "") << "TMA reads what threads have not made visible";
  wrong.ptx = with(right.ptx, R"(cp\.async\.bulk\.wait_group\.read 0;)", "");
  EXPECT_NE(fault_of(wrong), "") << "the block ends while its memory is read";
  wrong.ptx = with(right.ptx, R"(setp\.eq\.f32)", "setp.ne.f32");
  EXPECT_NE(fault_of(wrong), "") << "C counts where beta is 0, and else does not";
  const Kernel by_threads = compile(kPairs[11]);
  wrong = by_threads;
  wrong.ptx = with(by_threads.ptx, R"(bar\.sync\s+\S+ 128;)", "");
  EXPECT_NE(fault_of(wrong).find("race"), std::string::npos) << "threads read what others have not written";
}

} // namespace
} // namespace deepgen::one_tile_test
