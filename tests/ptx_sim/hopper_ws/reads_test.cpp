// hopper_ws where the epilogue reads a matrix of D's shape by TMA, on the simulated device: for each way to
// tile and to store, with buffers for all passes of a tile and for few of them.
#include "templates/nvidia/hopper_ws/hopper_ws.h"
#include "tests/ptx_sim/check/check.h"
#include "tests/ptx_sim/hopper_ws/hopper_kernel.h"

#include <gtest/gtest.h>

namespace deepgen::reads_test {
namespace {

struct Pair {
  const char *name, *problem, *tile, *rest;
  int64_t buffers = 0, passes = 0; ///< of a warp (swapped: a warpgroup), and of a tile
};

void PrintTo(const Pair& x, std::ostream* out) { *out << x.name; }

constexpr const char* kPlain =
    "cluster_m=1 cluster_n=1 cluster_k=1 splits=1 stream_k=0 group=2 pdl=1 align_a=16 align_b=16 align_d=16";
constexpr const char* kShared =
    "cluster_m=1 cluster_n=2 cluster_k=1 splits=1 stream_k=0 group=2 pdl=1 align_a=16 align_b=16 align_d=16";
constexpr const char* kStreamed =
    "cluster_m=1 cluster_n=1 cluster_k=1 splits=1 stream_k=1 group=2 pdl=0 align_a=16 align_b=16 align_d=16";

const Pair kPairs[] = {
    {"all_passes_buffered",
     "gemm m=300 n=136 k=72 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=bias+residual align=2",
     "bm=128 bn=128 slices=1 stages=3 consumers=2 pingpong=0 swap=0 promote=0", kPlain, 2, 2},
    {"two_buffers",
     "gemm m=200 n=520 k=136 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=residual+relu align=2",
     "bm=128 bn=256 slices=1 stages=4 consumers=2 pingpong=0 swap=0 promote=0", kPlain, 2, 4},
    {"one_buffer",
     "gemm m=400 n=136 k=200 batch=1 a=f16 b=f16 d=f16 acc=f32 layout=nt epilogue=multiply align=2",
     "bm=192 bn=128 slices=1 stages=5 consumers=3 pingpong=0 swap=0 promote=0", kPlain, 1, 2},
    {"an_odd_number_of_passes",
     "gemm m=150 n=200 k=72 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=residual align=2",
     "bm=64 bn=192 slices=1 stages=2 consumers=1 pingpong=0 swap=0 promote=0", kPlain, 3, 3},
    {"pingpong",
     "gemm m=300 n=392 k=136 batch=1 a=bf16 b=bf16 d=f32 acc=f32 layout=nt epilogue=residual align=2",
     "bm=128 bn=192 slices=1 stages=4 consumers=2 pingpong=1 swap=0 promote=0", kPlain, 4, 12},
    {"without_a_swizzle",
     "gemm m=200 n=96 k=72 batch=3 a=f16 b=f16 d=f16 acc=f32 layout=nt epilogue=residual align=2",
     "bm=64 bn=40 slices=1 stages=3 consumers=2 pingpong=1 swap=0 promote=0", kPlain, 1, 1},
    {"clusters",
     "gemm m=250 n=200 k=136 batch=2 a=tf32 b=tf32 d=f32 acc=f32 layout=nt epilogue=multiply+bias_row "
     "align=4",
     "bm=64 bn=64 slices=1 stages=2 consumers=1 pingpong=0 swap=0 promote=0", kShared, 2, 2},
    {"gated",
     "gemm m=150 n=96 k=96 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt gate=silu epilogue=residual "
     "align=2",
     "bm=128 bn=64 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0", kPlain, 2, 2},
    {"two_matrices",
     "gemm m=150 n=96 k=96 batch=1 a=e4m3 b=e4m3 d=f16 acc=f32 layout=nt epilogue=multiply+residual align=1",
     "bm=128 bn=48 slices=1 stages=3 consumers=2 pingpong=0 swap=0 promote=1", kPlain, 2, 2},
    {"swapped",
     "gemm m=50 n=520 k=136 batch=2 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=residual align=2",
     "bm=256 bn=24 slices=1 stages=5 consumers=1 pingpong=0 swap=1 promote=0", kPlain, 4, 4},
    {"swapped_few_buffers",
     "gemm m=70 n=520 k=520 batch=1 a=i8 b=i8 d=f32 acc=i32 layout=nt epilogue=scale_col+residual align=1",
     "bm=256 bn=32 slices=1 stages=5 consumers=1 pingpong=0 swap=1 promote=0", kPlain, 4, 4},
    {"groups",
     "gemm m=300 n=200 k=72 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt groups=7 epilogue=residual "
     "align=2",
     "bm=64 bn=128 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0", kPlain, 2, 2},
    {"groups_in_turn",
     "gemm m=300 n=200 k=72 batch=1 a=f16 b=f16 d=f32 acc=f32 layout=nt groups=5 epilogue=multiply align=2",
     "bm=64 bn=136 slices=1 stages=8 consumers=2 pingpong=1 swap=0 promote=0", kPlain, 6, 17},
    {"groups_swapped",
     "gemm m=70 n=392 k=136 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt groups=9 epilogue=residual "
     "align=2",
     "bm=128 bn=16 slices=1 stages=4 consumers=1 pingpong=0 swap=1 promote=0", kPlain, 2, 2},
    {"stream_k",
     "gemm m=300 n=136 k=540 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=tn epilogue=residual align=2",
     "bm=128 bn=64 slices=1 stages=3 consumers=2 pingpong=0 swap=0 promote=0", kStreamed, 1, 1},
    {"stream_k_in_turn",
     "gemm m=200 n=144 k=520 batch=1 a=f16 b=f16 d=f32 acc=f32 layout=nt epilogue=residual align=2",
     "bm=64 bn=96 slices=1 stages=3 consumers=2 pingpong=1 swap=0 promote=0", kStreamed, 3, 3},
};

Kernel compile(const Pair& x) { return compile_hopper(x.problem, std::string(x.tile) + " " + x.rest); }

/// The fault that a case shows: with operands of their own, or, seed 0, where D is what is read.
std::string fault_of(const Kernel& kernel, uint64_t seed) {
  for (const cuda::CallCase& c : cuda::call_cases(kernel.problem.gemm()))
    if (seed ? c.c == cuda::CallCase::separate && c.beta != 0 : c.reuse)
      if (const std::string fault = ptx_sim::check_case(kernel, c, seed).fault; !fault.empty()) return fault;
  return "";
}

class Reads : public testing::TestWithParam<Pair> {};

/// The simulated device runs 1 to 6 clusters, by the seed.
TEST_P(Reads, AreRightForAnyNumberOfBlocks) {
  const Kernel kernel = compile(GetParam());
  const Gemm& p = kernel.problem.gemm();
  const HopperTiling tiling(p, kernel.choice.config);
  EXPECT_EQ(tiling.staging.buffers, GetParam().buffers);
  EXPECT_EQ(tiling.staging.passes, GetParam().passes);
  // Two of an operand whose last tile reaches far beyond the matrix.
  ASSERT_EQ(kernel.maps.size(), 4u + (tiling.left.edge_rows > 0) + (tiling.right.edge_rows > 0));
  EXPECT_EQ(kernel.maps.back().operand, p.epilogue[0] == EpilogueOp::multiply ? "multiplier" : "residual");
  for (uint64_t seed : {0, 1, 4}) EXPECT_EQ(fault_of(kernel, seed), "") << "seed " << seed;
}
INSTANTIATE_TEST_SUITE_P(Kernels, Reads, testing::ValuesIn(kPairs),
                         [](const auto& info) { return info.param.name; });

TEST(ReadsByThreads, OfAnotherTypeOrAlignmentThanTmaTakes) {
  const Pair pairs[] = {
      {"", "gemm m=100 n=80 k=96 batch=1 a=i8 b=i8 d=i8 acc=i32 layout=nt epilogue=residual align=1",
       "bm=64 bn=64 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0", kPlain},
      {"", "gemm m=100 n=76 k=96 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=residual align=2",
       "bm=64 bn=64 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0",
       "cluster_m=1 cluster_n=1 cluster_k=1 splits=1 stream_k=0 group=2 pdl=1 align_a=16 align_b=16 "
       "align_d=8"},
  };
  for (const Pair& x : pairs) {
    const Kernel kernel = compile(x);
    for (const TensorMap& map : kernel.maps) EXPECT_NE(map.operand, "residual");
    EXPECT_EQ(fault_of(kernel, 1), "");
  }
}

/// More of them: PTX_SIM_READS=100 PTX_SIM_SEED=7.
TEST(ReadsAtRandom, AreRight) {
  std::mt19937_64 random(from_environment("PTX_SIM_SEED", 9));
  const auto draw = [&] {
    Gemm p = Gemm::parse(kPairs[size_t(random() % std::size(kPairs))].problem);
    draw_shape(p, {}, random); // with its epilogue
    p.m = 1 + int64_t(random() % 400), p.n = 8 * (1 + int64_t(random() % 50)),
    p.k = 16 * (1 + int64_t(random() % 30));
    p.batch = p.groups ? 1 : 1 + int64_t(random() % 2);
    return p;
  };
  const auto wanted = [](const Gemm& p, const Config& config) {
    return !HopperTiling(p, config).staging.reads.empty();
  };
  check_at_random(from_environment("PTX_SIM_READS", 8), generic_gpu("sm_90a"), random, draw, wanted,
                  [&](const Kernel& kernel) {
                    const uint64_t seed = random() % 5;
                    EXPECT_EQ(fault_of(kernel, seed), "") << "seed " << seed;
                  });
}

TEST(ReadsAreChecked, PlantedFaultsAreFound) {
  const Kernel right = compile(kPairs[1]);
  Kernel wrong = right;
  const auto faulty = [&] {
    for (uint64_t seed : {1, 2, 3})
      if (std::string fault = fault_of(wrong, seed); !fault.empty()) return fault;
    return std::string();
  };
  wrong.ptx =
      with(right.ptx, R"(cp\.async\.bulk\.wait_group\.read [01];([^}]*?mbarrier\.arrive\.expect_tx))", "$1");
  EXPECT_NE(faulty().find("race"), std::string::npos)
      << "what is stored is overwritten by what comes: " << faulty();
  wrong.ptx = with(right.ptx, R"((mbarrier\.arrive\.expect_tx[^;]*, )2048;)", "$011024;");
  EXPECT_NE(faulty(), "") << "not all bytes are waited for";
  wrong.ptx = with(right.ptx, R"(ldmatrix\.sync\.aligned\.m8n8\.x4)", "ldmatrix.sync.aligned.m8n8.x4.trans");
  EXPECT_NE(faulty(), "") << "elements of others";
}

} // namespace
} // namespace deepgen::reads_test
