// Tiles of hopper_ws that reach far beyond the end of a fixed size: the part that has the matrix's last rows
// comes in one box that ends with them, and those beyond are not copied. For each way to tile and for kernels
// at random; and which kernels stay what they were. More of them: PTX_SIM_EDGES=400 PTX_SIM_SEED=7.
#include "base/kernel/kernel_call.h"
#include "templates/nvidia/hopper_ws/hopper_ws.h"
#include "tests/ptx_sim/hopper_ws/edge_run.h"
#include "tests/ptx_sim/hopper_ws/hopper_kernel.h"

#include <gtest/gtest.h>

namespace deepgen::fixed_edge_test {
namespace {

constexpr const char* kBlock = "cluster_m=1 cluster_n=1 cluster_k=1 ";
constexpr const char* kAligned = " align_a=16 align_b=16 align_d=16";

struct FixedEdge {
  const char *name, *problem, *tile;
  std::string rest;
  int64_t a = 0, b = 0; ///< rows of the box at the edge; 0: the operand has none
};
void PrintTo(const FixedEdge& x, std::ostream* out) { *out << x.name; }

const FixedEdge kKernels[] = {
    {"plain",
     "gemm m=180 n=72 k=136 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=bias+relu align=2",
     "bm=128 bn=64 slices=1 stages=3 consumers=2 pingpong=0 swap=0 promote=0",
     std::string(kBlock) + "splits=1 stream_k=0 group=2 pdl=1" + kAligned, 56, 8},
    {"three_rows",
     "gemm m=3 n=200 k=200 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=none align=2",
     "bm=64 bn=128 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0",
     std::string(kBlock) + "splits=1 stream_k=0 group=1 pdl=0" + kAligned, 8, 72},
    {"swapped", "gemm m=221 n=72 k=136 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=bias align=2",
     "bm=64 bn=96 slices=1 stages=3 consumers=1 pingpong=0 swap=1 promote=0",
     std::string(kBlock) + "splits=1 stream_k=0 group=2 pdl=1" + kAligned, 32, 8},
    // Two blocks have a tile in common: of its parts one, both or none has rows of the matrix.
    {"shared_first_part",
     "gemm m=150 n=90 k=136 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=none align=2",
     "bm=128 bn=64 slices=1 stages=3 consumers=2 pingpong=0 swap=0 promote=0",
     "cluster_m=1 cluster_n=2 cluster_k=1 splits=1 stream_k=0 group=1 pdl=0 align_a=16 align_b=16 align_d=4",
     24, 32},
    {"shared_second_part",
     "gemm m=200 n=128 k=136 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=none align=2",
     "bm=128 bn=64 slices=1 stages=3 consumers=2 pingpong=0 swap=0 promote=0",
     "cluster_m=1 cluster_n=2 cluster_k=1 splits=1 stream_k=0 group=1 pdl=0 align_a=16 align_b=16 align_d=4",
     8, 0},
    {"shared_whole_part",
     "gemm m=192 n=128 k=136 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=none align=2",
     "bm=128 bn=64 slices=1 stages=3 consumers=2 pingpong=0 swap=0 promote=0",
     "cluster_m=1 cluster_n=2 cluster_k=1 splits=1 stream_k=0 group=1 pdl=0 align_a=16 align_b=16 align_d=4",
     64, 0},
    // The last cluster has a tile that is beyond.
    {"cluster_beyond",
     "gemm m=160 n=128 k=136 batch=1 a=bf16 b=bf16 d=f32 acc=f32 layout=nt epilogue=none align=2",
     "bm=64 bn=64 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0",
     std::string("cluster_m=2 cluster_n=1 cluster_k=1 splits=1 stream_k=0 group=1 pdl=0") + kAligned, 32, 0},
    {"cluster_of_four",
     "gemm m=300 n=120 k=72 batch=1 a=f16 b=f16 d=f16 acc=f32 layout=nt epilogue=scale_row align=2",
     "bm=128 bn=96 slices=1 stages=3 consumers=2 pingpong=0 swap=0 promote=0",
     std::string("cluster_m=2 cluster_n=2 cluster_k=1 splits=1 stream_k=0 group=1 pdl=0") + kAligned, 48, 24},
    {"swapped_shared",
     "gemm m=140 n=200 k=136 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=residual align=2",
     "bm=64 bn=128 slices=1 stages=3 consumers=1 pingpong=0 swap=1 promote=0",
     std::string("cluster_m=2 cluster_n=1 cluster_k=1 splits=1 stream_k=0 group=1 pdl=0") + kAligned, 16, 8},
    {"stream_k", "gemm m=150 n=72 k=540 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=bias align=2",
     "bm=64 bn=64 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0",
     std::string(kBlock) + "splits=1 stream_k=1 group=2 pdl=0 align_a=8 align_b=8 align_d=16", 24, 8},
    {"splits", "gemm m=70 n=56 k=330 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=gelu align=2",
     "bm=64 bn=48 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0",
     std::string(kBlock) + "splits=2 stream_k=0 group=1 pdl=2 align_a=4 align_b=4 align_d=16", 8, 8},
    {"cluster_k",
     "gemm m=70 n=120 k=330 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=relu align=2",
     "bm=128 bn=80 slices=1 stages=3 consumers=2 pingpong=0 swap=0 promote=0",
     "cluster_m=1 cluster_n=1 cluster_k=2 splits=1 stream_k=0 group=1 pdl=1 align_a=4 align_b=4 align_d=16",
     72, 40},
    {"gated",
     "gemm m=90 n=40 k=136 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt gate=silu epilogue=none align=2",
     "bm=64 bn=64 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0",
     std::string(kBlock) + "splits=1 stream_k=0 group=1 pdl=0" + kAligned, 32, 0},
    {"pingpong",
     "gemm m=200 n=136 k=136 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=residual align=2",
     "bm=64 bn=64 slices=1 stages=3 consumers=2 pingpong=1 swap=0 promote=0",
     std::string(kBlock) + "splits=1 stream_k=0 group=2 pdl=1 align_a=4 align_b=4 align_d=16", 8, 8},
    {"packed", "gemm m=80 n=43 k=67 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=none align=2",
     "bm=64 bn=96 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0",
     std::string(kBlock) + "splits=1 stream_k=0 group=1 pdl=2 align_a=2 align_b=2 align_d=2", 16, 48},
    {"slices", "gemm m=300 n=64 k=704 batch=1 a=i8 b=i8 d=i32 acc=i32 layout=nt epilogue=none align=1",
     "bm=128 bn=48 slices=2 stages=3 consumers=1 pingpong=0 swap=0 promote=0",
     std::string(kBlock) + "splits=1 stream_k=0 group=1 pdl=0" + kAligned, 48, 16},
    {"batches",
     "gemm m=200 n=80 k=144 batch=2 a=e4m3 b=e4m3 d=bf16 acc=f32 layout=nt epilogue=scale_a align=1",
     "bm=192 bn=48 slices=1 stages=3 consumers=3 pingpong=0 swap=0 promote=1",
     std::string(kBlock) + "splits=1 stream_k=0 group=1 pdl=1" + kAligned, 8, 32},
    {"groups",
     "gemm m=200 n=144 k=72 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt groups=5 epilogue=none align=2",
     "bm=64 bn=128 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0",
     std::string(kBlock) + "splits=1 stream_k=0 group=1 pdl=0" + kAligned, 0, 16},
    {"b_alone", "gemm m=128 n=144 k=72 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=tt epilogue=none align=2",
     "bm=128 bn=112 slices=1 stages=3 consumers=2 pingpong=0 swap=0 promote=0",
     std::string(kBlock) + "splits=1 stream_k=0 group=1 pdl=0" + kAligned, 0, 32},
};

Kernel compile(const FixedEdge& x) { return compile_hopper(x.problem, std::string(x.tile) + " " + x.rest); }

const HopperTile& tile_of(const HopperTiling& t, const char* name) {
  return t.left.name() == name ? t.left : t.right;
}

bool has_edges(const HopperTiling& t) { return t.left.edge_rows || t.right.edge_rows; }

class FixedEdges : public testing::TestWithParam<FixedEdge> {};

TEST_P(FixedEdges, AreRight) {
  const FixedEdge& x = GetParam();
  const Kernel kernel = compile(x);
  const Gemm& p = kernel.problem.gemm();
  const HopperTiling t(p, kernel.choice.config);
  EXPECT_EQ(tile_of(t, "a").edge_rows, x.a);
  EXPECT_EQ(tile_of(t, "b").edge_rows, x.b);
  uint64_t seed = 0;
  for (const cuda::CallCase& of : cuda::call_cases(p)) {
    const EdgeRun out = run_edges(kernel, of, ++seed);
    EXPECT_EQ(out.fault, "") << "seed " << seed;
    // Those of a residual are as they were.
    if (t.staging.reads.empty()) {
      EXPECT_EQ(out.empty, 0u) << "boxes beyond the matrix, seed " << seed;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Kernels, FixedEdges, testing::ValuesIn(kKernels),
                         [](const auto& info) { return std::string(info.param.name); });

constexpr int kShares = 4;
constexpr int64_t kMostBarriers = 48; ///< of a block that the simulator follows in any case

/// A quarter of the kernels each.
class RandomFixedEdges : public testing::TestWithParam<int> {};

TEST_P(RandomFixedEdges, AreRight) {
  std::mt19937_64 random(from_environment("PTX_SIM_SEED", 5) + uint64_t(GetParam()));
  const auto size = [&](int64_t most, int64_t unit) {
    return unit * (1 + int64_t(random() % uint64_t(most / unit)));
  };
  const auto draw = [&] {
    Gemm p = Gemm::parse(kKernels[size_t(random() % std::size(kKernels))].problem);
    p.m = size(400, 1), p.n = size(300, random() % 4 ? 8 : 1), p.k = size(400, random() % 4 ? 16 : 1);
    return p;
  };
  const auto wanted = [](const Gemm& p, const Config& config) {
    const HopperTiling t(p, config);
    return has_edges(t) && 2 * t.stages + t.read_barriers() <= kMostBarriers;
  };
  check_at_random(from_environment("PTX_SIM_EDGES", 40) / kShares, generic_gpu("sm_90a"), random, draw,
                  wanted, [&](const Kernel& kernel) {
                    const uint64_t seed = random();
                    EXPECT_EQ(run_edges(kernel, seed).fault, "") << "seed " << seed;
                  });
}
INSTANTIATE_TEST_SUITE_P(Share, RandomFixedEdges, testing::Range(0, kShares));

constexpr const char* kTile =
    "bm=128 bn=64 slices=1 stages=3 consumers=2 pingpong=0 swap=0 promote=0 cluster_m=1 cluster_n=1 "
    "cluster_k=1 splits=1 stream_k=0 group=1 pdl=0 align_a=16 align_b=16 align_d=2";

/// Of a kernel with tiles of 128 x 64.
bool has_edges(const std::string& sizes, const std::string& layout = "nt", const std::string& more = "") {
  const Gemm p =
      Gemm::parse("gemm " + sizes + " k=256 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=" + layout + more +
                  " epilogue=none align=2");
  return has_edges(HopperTiling(p, Config::parse(kTile)));
}

TEST(FixedEdgesAreFew, TilesThatFitHaveNone) {
  EXPECT_FALSE(has_edges("m=4096 n=4096"));
  EXPECT_FALSE(has_edges("m=249 n=121")) << "7 rows may lie beyond";
  EXPECT_TRUE(has_edges("m=248 n=121"));
  EXPECT_TRUE(has_edges("m=249 n=120"));
  EXPECT_FALSE(has_edges("m=249 n=95", "nn")) << "rows of B's box are K's";
  EXPECT_FALSE(has_edges("m=200 n=128", "tn")) << "rows of A's box are K's";
  EXPECT_FALSE(has_edges("m=200 n=128", "nt", " groups=3")) << "behind a group's last row there are others";
  EXPECT_FALSE(has_edges("m=256 n=70", "nt", " gate=silu")) << "behind the first weight there is the second";
}

TEST(FixedEdgesAreFew, ARangeHasThem) {
  EXPECT_TRUE(has_edges("m=1..500 n=96"));
  EXPECT_FALSE(has_edges("m=1..500 n=96", "tn"));
}

/// Faults of the first kernel: A has tiles of 128 rows and then 52, in a box of 56; B of 64 columns and
/// then 8.
class FixedEdgeFaults : public testing::Test {
protected:
  void SetUp() override { kernel_ = compile(kKernels[0]); }
  EdgeRun with_ptx(const char* pattern, const char* by) const {
    Kernel changed = kernel_;
    changed.ptx = with(kernel_.ptx, pattern, by);
    return run_edges(changed, 1);
  }
  Kernel kernel_;
};

TEST_F(FixedEdgeFaults, AreNotInTheKernelItself) {
  const EdgeRun out = run_edges(kernel_, 1);
  EXPECT_EQ(out.fault, "");
  EXPECT_EQ(out.empty, 0u);
  EXPECT_EQ(out.copies, 4u * 3u * 2u) << "of each operand one for each tile and stage";
}

TEST_F(FixedEdgeFaults, AWrongCountOfBytesIsFound) {
  constexpr const char* expecting =
      R"((mbarrier\.arrive\.expect_tx\.shared::cta\.b64 _, \[[^\]]*\]), %r\d+;)";
  EXPECT_NE(with_ptx(expecting, "$1, 24576;").fault.find("deadlock"), std::string::npos)
      << "all bytes of a stage are expected";
  EXPECT_NE(with_ptx(expecting, "$1, 8192;").fault, "");
}

TEST_F(FixedEdgeFaults, ABoxOfOtherRowsIsFound) {
  for (const uint32_t rows : {48u, 64u, 128u})
    EXPECT_NE(run_with_box(kernel_, 1, 56, rows).fault, "") << rows;
}

} // namespace
} // namespace deepgen::fixed_edge_test
