// Tiles of hopper_ws that reach beyond the last row of an operand whose rows have a range: the part that has
// the last rows comes in a box that ends with them, which the map of the call tells, and those beyond are not
// copied. Calls of sizes around the ends of parts and tiles, for each way to tile, and of kernels at random;
// and faults of the count of bytes and of the boxes. More of them: PTX_SIM_EDGES=400 PTX_SIM_SEED=7.
#include "base/kernel/kernel_call.h"
#include "templates/nvidia/hopper_ws/hopper_ws.h"
#include "tests/ptx_sim/hopper_ws/edge_run.h"
#include "tests/ptx_sim/hopper_ws/hopper_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>

namespace deepgen::edge_test {
namespace {

struct EdgeKernel {
  const char *name, *problem, *config;
};
void PrintTo(const EdgeKernel& x, std::ostream* out) { *out << x.name; }

const EdgeKernel kKernels[] = {
    {"plain",
     "gemm m=1..300 n=72 k=130 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=bias+relu align=2",
     "bm=128 bn=64 slices=1 stages=3 consumers=2 pingpong=0 swap=0 promote=0 cluster_m=1 cluster_n=1 "
     "cluster_k=1 splits=1 stream_k=0 group=2 pdl=1 align_a=16 align_b=16 align_d=16"},
    {"swapped",
     "gemm m=1..250 n=72 k=130 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=bias align=2",
     "bm=64 bn=96 slices=1 stages=3 consumers=1 pingpong=0 swap=1 promote=0 cluster_m=1 cluster_n=1 "
     "cluster_k=1 splits=1 stream_k=0 group=2 pdl=1 align_a=16 align_b=16 align_d=16"},
    {"shared",
     "gemm m=1..300 n=90 k=130 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=none align=2",
     "bm=128 bn=64 slices=1 stages=3 consumers=2 pingpong=0 swap=0 promote=0 cluster_m=1 cluster_n=2 "
     "cluster_k=1 splits=1 stream_k=0 group=1 pdl=0 align_a=16 align_b=16 align_d=4"},
    {"cluster_beyond",
     "gemm m=1..300 n=100 k=130 batch=1 a=bf16 b=bf16 d=f32 acc=f32 layout=nt epilogue=none align=2",
     "bm=64 bn=64 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0 cluster_m=2 cluster_n=1 "
     "cluster_k=1 splits=1 stream_k=0 group=1 pdl=0 align_a=16 align_b=16 align_d=16"},
    {"cluster_of_four",
     "gemm m=1..520 n=120 k=72 batch=1 a=f16 b=f16 d=f16 acc=f32 layout=nt epilogue=scale_row align=2",
     "bm=128 bn=32 slices=1 stages=3 consumers=2 pingpong=0 swap=0 promote=0 cluster_m=2 cluster_n=2 "
     "cluster_k=1 splits=1 stream_k=0 group=1 pdl=0 align_a=16 align_b=16 align_d=16"},
    {"swapped_shared",
     "gemm m=1..300 n=200 k=130 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=residual align=2",
     "bm=64 bn=128 slices=1 stages=3 consumers=1 pingpong=0 swap=1 promote=0 cluster_m=2 cluster_n=1 "
     "cluster_k=1 splits=1 stream_k=0 group=1 pdl=0 align_a=16 align_b=16 align_d=16"},
    {"stream_k",
     "gemm m=1..300 n=72 k=540 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=bias align=2",
     "bm=64 bn=64 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0 cluster_m=1 cluster_n=1 "
     "cluster_k=1 splits=1 stream_k=1 group=2 pdl=0 align_a=8 align_b=8 align_d=16"},
    {"splits",
     "gemm m=1..200 n=40 k=330 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=gelu align=2",
     "bm=64 bn=40 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0 cluster_m=1 cluster_n=1 "
     "cluster_k=1 splits=2 stream_k=0 group=1 pdl=2 align_a=4 align_b=4 align_d=16"},
    {"cluster_k",
     "gemm m=1..200 n=40 k=330 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=relu align=2",
     "bm=128 bn=40 slices=1 stages=3 consumers=2 pingpong=0 swap=0 promote=0 cluster_m=1 cluster_n=1 "
     "cluster_k=2 "
     "splits=1 stream_k=0 group=1 pdl=1 align_a=4 align_b=4 align_d=16"},
    {"gated",
     "gemm m=1..200 n=40 k=136 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt gate=silu epilogue=none "
     "align=2",
     "bm=64 bn=64 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0 cluster_m=1 cluster_n=1 "
     "cluster_k=1 splits=1 stream_k=0 group=1 pdl=0 align_a=16 align_b=16 align_d=16"},
    {"pingpong",
     "gemm m=1..300 n=136 k=130 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=residual align=2",
     "bm=64 bn=64 slices=1 stages=3 consumers=2 pingpong=1 swap=0 promote=0 cluster_m=1 cluster_n=1 "
     "cluster_k=1 splits=1 stream_k=0 group=2 pdl=1 align_a=4 align_b=4 align_d=16"},
    {"packed", "gemm m=1..200 n=43 k=67 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=none align=2",
     "bm=64 bn=48 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0 cluster_m=1 cluster_n=1 "
     "cluster_k=1 splits=1 stream_k=0 group=1 pdl=2 align_a=2 align_b=2 align_d=2"},
    {"slices", "gemm m=1..300 n=64 k=700 batch=1 a=i8 b=i8 d=i32 acc=i32 layout=nt epilogue=none align=1",
     "bm=64 bn=32 slices=2 stages=3 consumers=1 pingpong=0 swap=0 promote=0 cluster_m=1 cluster_n=1 "
     "cluster_k=1 splits=1 stream_k=0 group=1 pdl=0 align_a=16 align_b=16 align_d=16"},
    {"batches",
     "gemm m=1..200 n=48 k=144 batch=1..3 a=e4m3 b=e4m3 d=bf16 acc=f32 layout=nt epilogue=scale_a align=1",
     "bm=192 bn=48 slices=1 stages=3 consumers=3 pingpong=0 swap=0 promote=1 cluster_m=1 cluster_n=1 "
     "cluster_k=1 splits=1 stream_k=0 group=1 pdl=1 align_a=16 align_b=16 align_d=16"},
    // Of B, and of both operands.
    {"columns",
     "gemm m=70 n=1..300 k=130 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=bias align=2",
     "bm=64 bn=128 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0 cluster_m=2 cluster_n=1 "
     "cluster_k=1 splits=1 stream_k=0 group=1 pdl=0 align_a=16 align_b=16 align_d=2"},
    {"swapped_columns",
     "gemm m=30 n=1..300 k=130 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=none align=2",
     "bm=128 bn=32 slices=1 stages=3 consumers=2 pingpong=0 swap=1 promote=0 cluster_m=1 cluster_n=1 "
     "cluster_k=1 splits=1 stream_k=0 group=1 pdl=1 align_a=16 align_b=16 align_d=2"},
    {"both",
     "gemm m=1..200 n=1..200 k=0..130 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=none align=2",
     "bm=64 bn=96 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0 cluster_m=2 cluster_n=1 "
     "cluster_k=1 splits=1 stream_k=0 group=1 pdl=2 align_a=2 align_b=2 align_d=2"},
};

Kernel compile(const EdgeKernel& x) { return compile_hopper(x.problem, x.config); }

/// Sizes of the range around the ends of the tile's parts, and what may lie beyond them.
std::set<int64_t> sizes_around(const HopperTile& edge, const Gemm& p, Size along) {
  const int64_t part = edge.part_rows(), tile = edge.rows, most = p.sizes()[along];
  const int64_t least = std::max<int64_t>(1, p.least[size_t(along)].value_or(most));
  std::set<int64_t> all = {most - 1, most}, inside;
  for (const int64_t start : {int64_t(0), tile, most / tile * tile})
    for (const int64_t end :
         {int64_t(1), int64_t(8), part / 2, part - 8, part, part - 16, part - 32, tile, tile / 2})
      for (const int64_t more : {-1, 0, 1}) all.insert(start + end + more);
  std::copy_if(all.begin(), all.end(), std::inserter(inside, inside.end()),
               [&](int64_t x) { return x >= least && x <= most; });
  return inside;
}

std::string text(const Sizes& x) {
  return "m=" + std::to_string(x.m) + " n=" + std::to_string(x.n) + " k=" + std::to_string(x.k) +
         " batch=" + std::to_string(x.batch);
}

/// Of the operand with edges whose rows have a range; of both the left one.
const HopperTile& edge_of(const HopperTiling& t, const Gemm& p) {
  return t.left.edge_rows && p.ranged(t.left.along()) ? t.left : t.right;
}

class Edges : public testing::TestWithParam<EdgeKernel> {};

TEST_P(Edges, AreRightAroundTheEndsOfParts) {
  const Kernel kernel = compile(GetParam());
  const Gemm& p = kernel.problem.gemm();
  const HopperTiling t(p, kernel.choice.config);
  const HopperTile& edge = edge_of(t, p);
  ASSERT_GT(edge.edge_rows, 0);
  EXPECT_EQ(edge.edge_rows, edge.part_rows()) << "at most";
  const Size along = edge.along();
  std::mt19937_64 random(1);
  uint64_t seed = 0;
  for (const int64_t size : sizes_around(edge, p, along)) {
    Sizes sizes = draw_sizes(p, random);
    sizes[along] = size;
    const EdgeRun run = run_edges(kernel_in_call(kernel, sizes), ++seed);
    EXPECT_EQ(run.fault, "") << text(sizes) << ", seed " << seed;
    // Those of a residual are as they were.
    if (t.staging.reads.empty()) {
      EXPECT_EQ(run.empty, 0u) << text(sizes) << ": boxes beyond the matrix";
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Kernels, Edges, testing::ValuesIn(kKernels),
                         [](const auto& info) { return std::string(info.param.name); });

constexpr int kShares = 4, kCalls = 5;

/// A quarter of the kernels each.
class RandomEdges : public testing::TestWithParam<int> {};

TEST_P(RandomEdges, AreRight) {
  SampleSpec spec;
  spec.archs = {"sm_90a"}, spec.templates = {"hopper_ws"}, spec.ranges = true;
  spec.largest = 300, spec.most_flops = 1e7;
  spec.seed = from_environment("PTX_SIM_SEED", 5) + uint64_t(GetParam());
  const size_t wanted = size_t(from_environment("PTX_SIM_EDGES", 40)) / kShares;
  size_t checked = 0;
  for (int more = 0; checked < wanted && more < 20; ++more, spec.seed += kShares) {
    spec.count = 4 * wanted;
    for (const RandomCandidate& s : draw_samples(spec)) {
      if (checked == wanted) break;
      const Gemm& p = s.problem.gemm();
      const HopperTiling t(p, s.choice.config);
      const HopperTile& edge = edge_of(t, p);
      if (!edge.edge_rows || !p.ranged(edge.along())) continue;
      ++checked;
      SCOPED_TRACE(p.key() + " | " + s.choice.text());
      const Kernel kernel = compile_hopper(p.key(), s.choice.config.text());
      std::mt19937_64 random(checked);
      const Size along = edge.along();
      const std::set<int64_t> around = sizes_around(edge, p, along);
      for (int call = 0; call < kCalls; ++call) {
        Sizes sizes = draw_sizes(p, random);
        sizes[along] = *std::next(around.begin(), long(random() % around.size()));
        const EdgeRun run = run_edges(kernel_in_call(kernel, sizes), random());
        EXPECT_EQ(run.fault, "") << text(sizes);
      }
    }
  }
  EXPECT_EQ(checked, wanted) << "no more such kernels were found";
}
INSTANTIATE_TEST_SUITE_P(Share, RandomEdges, testing::Range(0, kShares));

/// Faults of the first kernel, whose tiles have 128 rows, in a call of 180: the second tile has 52, and its
/// box 56.
class EdgeFaults : public testing::Test {
protected:
  void SetUp() override {
    const Kernel kernel = compile(kKernels[0]);
    Sizes sizes = kernel.problem.gemm().sizes();
    sizes.m = 180;
    call_ = kernel_in_call(kernel, sizes);
    const HopperTiling t(kernel.problem.gemm(), kernel.choice.config);
    ASSERT_EQ(t.left.edge_rows, 128);
    stage_bytes_ = t.stage_bytes;
  }
  EdgeRun with_ptx(const char* pattern, const std::string& by) const {
    Kernel changed = call_;
    changed.ptx = with(call_.ptx, pattern, by.c_str());
    return run_edges(changed, 1);
  }
  /// Of A's whole boxes, or of its last one.
  EdgeRun with_box(size_t which, uint32_t rows) const {
    return run_with_box(call_, which, which ? 56 : 128, rows);
  }

  Kernel call_;
  int64_t stage_bytes_ = 0;
};

TEST_F(EdgeFaults, AreNotInTheKernelItself) {
  const EdgeRun run = run_edges(call_, 1);
  EXPECT_EQ(run.fault, "");
  EXPECT_EQ(run.empty, 0u);
  EXPECT_EQ(run.copies, 2u * 2u * 3u * 2u) << "of each operand one for each tile and three of K";
}

TEST_F(EdgeFaults, AWrongCountOfBytesHangs) {
  constexpr const char* expecting =
      R"((mbarrier\.arrive\.expect_tx\.shared::cta\.b64 _, \[[^\]]*\]), %r\d+;)";
  EXPECT_NE(with_ptx(expecting, "$1, " + std::to_string(stage_bytes_) + ";").fault.find("deadlock"),
            std::string::npos)
      << "all bytes of a stage are expected";
  EXPECT_NE(with_ptx(expecting, "$1, " + std::to_string(stage_bytes_ - 128) + ";").fault, "");
}

TEST_F(EdgeFaults, RowsThatAreNotWholeEightsAreFound) {
  EXPECT_NE(with_ptx(R"((add\.s32 \t%r\d+, %r\d+), 7;)", "$1, 0;").fault, "")
      << "48 are expected, and 56 come";
}

TEST_F(EdgeFaults, ABoxOfOtherRowsIsFound) {
  for (const uint32_t rows : {48u, 52u, 64u, 128u}) EXPECT_NE(with_box(1, rows).fault, "") << rows;
  for (const uint32_t rows : {56u, 64u, 120u, 136u}) EXPECT_NE(with_box(0, rows).fault, "") << rows;
}

} // namespace
} // namespace deepgen::edge_test
