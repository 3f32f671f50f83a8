// Groups of rows on the simulated device: every way to share rows among them, awkward ones included, for the
// ways in which kernels tile and store.
#include "generator/codegen/compile.h"
#include "tests/ptx_sim/check/check.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace deepgen::groups_test {
namespace {

KernelFile compile(const std::string& problem, const std::string& choice) {
  setenv("DEEPGEN_PTXAS", "none", 1);
  const size_t name = choice.find(' ');
  return compile_candidate(Gemm::parse(problem), "sm_90a",
                           {choice.substr(0, name), Config::parse(choice.substr(name + 1))}, false, false);
}

std::string hopper(const std::string& shape) {
  return "hopper_ws " + shape +
         " cluster_k=1 splits=1 stream_k=0 group=2 pdl=1 align_a=16 align_b=16 align_d=";
}

struct Pair {
  const char* name;
  std::string problem, choice;
};

const Pair kPairs[] = {
    {"warps",
     "gemm m=90 n=40 k=72 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt groups=5 epilogue=bias+residual "
     "align=2",
     "mma_sync bm=32 bn=32 bk=64 warps_m=2 warps_n=2 warps_k=1 stages=3 blocks=1 splits=1 group=1 pdl=1 "
     "align_a=16 align_b=16 align_d=16"},
    {"unaligned",
     "gemm m=61 n=35 k=51 batch=1 a=f16 b=f16 d=f32 acc=f32 layout=nn groups=40 epilogue=scale_col align=2",
     "mma_sync bm=16 bn=32 bk=64 warps_m=1 warps_n=2 warps_k=2 stages=2 blocks=1 splits=1 group=1 pdl=0 "
     "align_a=2 align_b=2 align_d=4"},
    {"without_tensor_cores",
     "gemm m=77 n=40 k=48 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt groups=6 gate=relu epilogue=bias "
     "align=4",
     "simt wide=1 bm=32 bn=32 bk=8 tm=2 tn=4 stages=3 blocks=1 splits=1 group=1"},
    {"converted",
     "gemm m=50 n=33 k=21 batch=1 a=e5m2 b=e4m3 d=f16 acc=f32 layout=nn groups=3 "
     "epilogue=scale_col+prelu+residual "
     "align=1",
     "simt wide=0 bm=16 bn=32 bk=8 tm=1 tn=4 stages=2 blocks=1 splits=1 group=1"},
    {"gated",
     "gemm m=150 n=64 k=96 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt groups=3 gate=silu epilogue=bias "
     "align=2",
     hopper("bm=64 bn=64 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0 cluster_m=1 cluster_n=1") +
         "16"},
    {"pingpong",
     "gemm m=300 n=72 k=136 batch=1 a=f16 b=f16 d=f16 acc=f32 layout=nt groups=7 epilogue=bias_row align=2",
     hopper("bm=64 bn=40 slices=1 stages=3 consumers=2 pingpong=1 swap=0 promote=0 cluster_m=1 cluster_n=1") +
         "16"},
    {"clusters",
     "gemm m=400 n=96 k=72 batch=1 a=bf16 b=bf16 d=f32 acc=f32 layout=nn groups=4 epilogue=multiply align=2",
     hopper(
         "bm=128 bn=128 slices=1 stages=2 consumers=2 pingpong=0 swap=0 promote=0 cluster_m=2 cluster_n=1") +
         "16"},
    {"swapped",
     "gemm m=70 n=192 k=144 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt groups=9 gate=gelu epilogue=none "
     "align=2",
     hopper(
         "bm=128 bn=16 slices=1 stages=4 consumers=1 pingpong=0 swap=1 promote=0 cluster_m=1 cluster_n=1") +
         "16"},
    {"swapped_clusters",
     "gemm m=50 n=200 k=160 batch=1 a=i8 b=i8 d=i8 acc=i32 layout=nt groups=2 epilogue=bias align=1",
     hopper("bm=64 bn=16 slices=1 stages=3 consumers=1 pingpong=0 swap=1 promote=0 cluster_m=2 cluster_n=1") +
         "8"},
    {"stored_by_threads",
     "gemm m=200 n=37 k=64 batch=1 a=e4m3 b=e4m3 d=bf16 acc=f32 layout=nt groups=1024 epilogue=none align=1",
     hopper("bm=64 bn=40 slices=1 stages=2 consumers=1 pingpong=0 swap=0 promote=1 cluster_m=1 cluster_n=1") +
         "2"},
};

class Groups : public testing::TestWithParam<Pair> {};

TEST_P(Groups, AreRightHoweverRowsAreShared) {
  const KernelFile file = compile(GetParam().problem, GetParam().choice);
  ASSERT_EQ(file.status, "ok") << file.detail;
  const Kernel& kernel = *file.find("main");
  for (Sharing sharing : all_sharings)
    for (uint64_t seed : {1, 2}) {
      cuda::CallCase c = cuda::call_cases(kernel.problem.gemm()).back();
      c.sharing = sharing;
      EXPECT_EQ(ptx_sim::check_case(kernel, c, seed).fault, "") << int(sharing) << ", seed " << seed;
    }
}
INSTANTIATE_TEST_SUITE_P(Kernels, Groups, testing::ValuesIn(kPairs),
                         [](const auto& info) { return info.param.name; });

TEST(GroupsAreChecked, AKernelThatLeavesOutGroupsIsFound) {
  const KernelFile file = compile(
      "gemm m=90 n=40 k=72 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt groups=1 epilogue=none align=2",
      kPairs[0].choice);
  ASSERT_EQ(file.status, "ok") << file.detail;
  Kernel kernel = *file.find("main");
  cuda::CallCase c = cuda::call_cases(kernel.problem.gemm()).back();
  EXPECT_EQ(ptx_sim::check_case(kernel, c, 1).fault, "");
  kernel.problem.gemm().groups = 3, c.sharing = Sharing::even;
  EXPECT_NE(ptx_sim::check_case(kernel, c, 1).fault.find("not written"), std::string::npos);
}

TEST(GroupsAreChecked, AKernelThatWritesRowsOfNoGroupIsFound) {
  const KernelFile file =
      compile("gemm m=90 n=40 k=72 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt epilogue=none align=2",
              kPairs[0].choice);
  ASSERT_EQ(file.status, "ok") << file.detail;
  Kernel kernel = *file.find("main");
  kernel.problem.gemm().groups = 1;
  cuda::CallCase c = cuda::call_cases(kernel.problem.gemm()).back();
  EXPECT_NE(ptx_sim::check_case(kernel, c, 2).fault.find("of no group, but written"), std::string::npos);
}

} // namespace
} // namespace deepgen::groups_test
