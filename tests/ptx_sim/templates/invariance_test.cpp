// Batch invariant problems on the simulated device: kernels of one order of sums give the same bits, at every
// M, place and alignment, and a kernel that cuts K by a tile's place does not.
#include "generator/codegen/compile.h"
#include "templates/core/template.h"
#include "tests/ptx_sim/check/equal_rows.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace deepgen::invariance_test {
namespace {

Choice choice_of(const std::string& text) {
  const size_t name = text.find(' ');
  return {text.substr(0, name), Config::parse(text.substr(name + 1))};
}

Kernel compiled(const Gemm& p, const std::string& choice) {
  setenv("DEEPGEN_PTXAS", "none", 1); // the PTX is all that is wanted
  const KernelFile file = compile_candidate(p, "sm_90a", choice_of(choice), false, false);
  EXPECT_EQ(file.status, "ok") << file.detail << ": " << choice;
  return file.status == "ok" ? file.kernels.at(0) : Kernel();
}

/// Kernels of one order, and one of another.
struct Orders {
  const char *name, *problem;
  std::vector<std::string> same;
  std::string other;
};

const Orders kOrders[] = {
    {"simt",
     "gemm m=1..80 n=40 k=200 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn epilogue=bias+residual "
     "invariant=rows align=4",
     {"simt wide=1 bm=32 bn=32 bk=8 tm=2 tn=4 stages=3 blocks=1 splits=1 group=1",
      "simt wide=0 bm=64 bn=64 bk=16 tm=4 tn=4 stages=2 blocks=1 splits=1 group=4",
      "simt wide=1 bm=16 bn=32 bk=32 tm=1 tn=4 stages=2 blocks=2 splits=1 group=1"},
     "simt wide=1 bm=32 bn=32 bk=8 tm=2 tn=4 stages=3 blocks=1 splits=2 group=1"},
    {"simt_splits",
     "gemm m=1..80 n=40 k=256 batch=2 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=none invariant=rows "
     "align=4",
     {"simt wide=1 bm=32 bn=32 bk=8 tm=2 tn=4 stages=3 blocks=1 splits=2 group=1",
      "simt wide=0 bm=64 bn=64 bk=16 tm=4 tn=4 stages=2 blocks=1 splits=2 group=1"},
     "simt wide=1 bm=32 bn=32 bk=8 tm=2 tn=4 stages=3 blocks=1 splits=4 group=1"},
    {"mma_sync",
     "gemm m=1..80 n=48 k=520 batch=1 a=bf16 b=bf16 d=f32 acc=f32 layout=nt epilogue=bias invariant=rows "
     "align=2",
     {"mma_sync bm=32 bn=32 bk=64 warps_m=2 warps_n=2 warps_k=1 stages=3 blocks=1 splits=1 group=4 pdl=1 "
      "align_a=16 align_b=16 align_d=16",
      "mma_sync bm=64 bn=64 bk=128 warps_m=2 warps_n=2 warps_k=1 stages=2 blocks=1 splits=1 group=1 pdl=0 "
      "align_a=2 align_b=2 align_d=4",
      "mma_sync bm=16 bn=64 bk=64 warps_m=1 warps_n=4 warps_k=1 stages=4 blocks=1 splits=1 group=1 pdl=0 "
      "align_a=16 align_b=16 align_d=16"},
     "mma_sync bm=32 bn=32 bk=64 warps_m=2 warps_n=2 warps_k=2 stages=3 blocks=1 splits=1 group=4 pdl=1 "
     "align_a=16 align_b=16 align_d=16"},
    {"mma_sync_parts",
     "gemm m=1..80 n=48 k=1032 batch=1 a=bf16 b=bf16 d=f32 acc=f32 layout=nn epilogue=none invariant=rows "
     "align=2",
     {"mma_sync bm=32 bn=32 bk=128 warps_m=2 warps_n=2 warps_k=2 stages=2 blocks=1 splits=2 group=1 pdl=0 "
      "align_a=16 align_b=16 align_d=16",
      "mma_sync bm=64 bn=64 bk=128 warps_m=2 warps_n=2 warps_k=2 stages=3 blocks=1 splits=2 group=1 pdl=0 "
      "align_a=2 align_b=2 align_d=4"},
     "mma_sync bm=32 bn=32 bk=64 warps_m=2 warps_n=2 warps_k=2 stages=2 blocks=1 splits=2 group=1 pdl=0 "
     "align_a=16 align_b=16 align_d=16"},
    {"gemv",
     "gemm m=1..16 n=80 k=600 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=bias invariant=rows "
     "align=4",
     {"gemv form=0 vec=16 width=4 rwarps=2 kwarps=2 unroll=1 splits=1 hint=1 pipe=0 pdl=0 vectors=4",
      "gemv form=0 vec=16 width=2 rwarps=1 kwarps=2 unroll=1 splits=1 hint=2 pipe=1 pdl=1 vectors=1",
      "gemv form=0 vec=16 width=8 rwarps=1 kwarps=2 unroll=1 splits=1 hint=1 pipe=0 pdl=0 vectors=2"},
     "gemv form=0 vec=16 width=4 rwarps=2 kwarps=4 unroll=1 splits=1 hint=1 pipe=0 pdl=0 vectors=4"},
    {"hopper_ws",
     "gemm m=1..200 n=128 k=520 batch=1 a=bf16 b=bf16 d=f32 acc=f32 layout=nt epilogue=none invariant=rows "
     "align=2",
     {"hopper_ws bm=64 bn=64 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0 cluster_m=1 "
      "cluster_n=1 cluster_k=1 splits=1 stream_k=0 group=1 pdl=1 align_a=16 align_b=16 align_d=16",
      "hopper_ws bm=128 bn=128 slices=2 stages=2 consumers=2 pingpong=0 swap=0 promote=0 cluster_m=1 "
      "cluster_n=1 cluster_k=1 splits=1 stream_k=0 group=1 pdl=0 align_a=16 align_b=16 align_d=16",
      "hopper_ws bm=64 bn=16 slices=1 stages=4 consumers=1 pingpong=0 swap=1 promote=0 cluster_m=1 "
      "cluster_n=1 cluster_k=1 splits=1 stream_k=0 group=1 pdl=0 align_a=16 align_b=16 align_d=16"},
     "hopper_ws bm=64 bn=64 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0 cluster_m=1 "
     "cluster_n=1 cluster_k=2 splits=1 stream_k=0 group=1 pdl=1 align_a=16 align_b=16 align_d=16"},
    {"hopper_ws_parts",
     "gemm m=1..200 n=128 k=1040 batch=1 a=bf16 b=bf16 d=f32 acc=f32 layout=nt epilogue=none invariant=rows "
     "align=2",
     {"hopper_ws bm=64 bn=64 slices=1 stages=3 consumers=1 pingpong=0 swap=0 promote=0 cluster_m=1 "
      "cluster_n=1 cluster_k=1 splits=2 stream_k=0 group=1 pdl=1 align_a=16 align_b=16 align_d=16",
      "hopper_ws bm=64 bn=16 slices=1 stages=4 consumers=1 pingpong=0 swap=1 promote=0 cluster_m=1 "
      "cluster_n=1 cluster_k=1 splits=2 stream_k=0 group=1 pdl=0 align_a=16 align_b=16 align_d=16"},
     "hopper_ws bm=64 bn=64 slices=2 stages=2 consumers=1 pingpong=0 swap=0 promote=0 cluster_m=1 "
     "cluster_n=1 cluster_k=1 splits=2 stream_k=0 group=1 pdl=1 align_a=16 align_b=16 align_d=16"},
};

class SumOrders : public testing::TestWithParam<Orders> {};

TEST_P(SumOrders, GiveTheSameBits) {
  const Gemm p = Gemm::parse(GetParam().problem);
  const std::vector<int64_t> rows = {1, 7, p.m / 2 + 1, p.m};
  std::string order, bits;
  for (const std::string& choice : GetParam().same) {
    const Kernel kernel = compiled(p, choice);
    if (order.empty()) order = kernel.sum_order;
    EXPECT_EQ(kernel.sum_order, order) << choice;
    const std::string found = ptx_sim::equal_rows({kernel, ptx_sim::runner(kernel)}, rows);
    if (bits.empty()) bits = found;
    EXPECT_EQ(found.find("other bits"), std::string::npos) << found << ": " << choice;
    EXPECT_EQ(found.find("fault"), std::string::npos) << found << ": " << choice;
    EXPECT_EQ(found, bits) << choice;
  }
  const Kernel other = compiled(p, GetParam().other);
  EXPECT_NE(other.sum_order, order);
  const std::string found = ptx_sim::equal_rows({other, ptx_sim::runner(other)}, rows);
  EXPECT_EQ(found.find("other bits"), std::string::npos) << found << ": " << GetParam().other;
  EXPECT_NE(found, bits) << "an order that is another one gives the same bits: " << GetParam().other;
}
INSTANTIATE_TEST_SUITE_P(Of, SumOrders, testing::ValuesIn(kOrders),
                         [](const auto& info) { return std::string(info.param.name); });

/// Of a problem that is not batch invariant, stream_k may cut K anywhere: the fault that the rule is for.
TEST(Invariance, StreamKCutsByPlace) {
  const Gemm p = Gemm::parse("gemm m=1..400 n=320 k=1024 batch=1 a=bf16 b=bf16 d=f32 acc=f32 layout=nt "
                             "epilogue=none align=2");
  const std::string choice =
      "hopper_ws bm=64 bn=64 slices=1 stages=8 consumers=1 pingpong=0 swap=0 promote=0 cluster_m=1 "
      "cluster_n=1 cluster_k=1 splits=1 stream_k=1 group=1 pdl=0 align_a=16 align_b=16 align_d=16";
  const Kernel kernel = compiled(p, choice);
  EXPECT_NE(ptx_sim::equal_rows({kernel, ptx_sim::runner(kernel)}, {400}).find("other bits"),
            std::string::npos);
  Gemm invariant = p;
  invariant.batch_invariant = true, invariant.m = 8192, invariant.n = 4096; // so many tiles that it would pay
  Device device = generic_gpu("sm_90a");
  const std::string why = find_template("hopper_ws").why_illegal(invariant, device, choice_of(choice).config);
  EXPECT_NE(why.find("the bits of a row would depend on it"), std::string::npos) << why;
}

/// Fallbacks for less aligned operands are of the same order, or are not there.
TEST(Invariance, FallbacksKeepTheOrder) {
  setenv("DEEPGEN_PTXAS", "none", 1);
  for (const Orders& orders : kOrders) {
    const Gemm p = Gemm::parse(orders.problem);
    for (const std::string& choice : orders.same) {
      const KernelFile file = compile_candidate(p, "sm_90a", choice_of(choice), false, true);
      ASSERT_EQ(file.status, "ok") << file.detail;
      const bool has_others =
          std::string(orders.name).find("hopper") == std::string::npos && std::string(orders.name) != "gemv";
      if (!has_others) {
        EXPECT_EQ(file.kernels.size(), 1u) << choice;
      }
      for (const Kernel& k : file.kernels) EXPECT_EQ(k.sum_order, file.kernels[0].sum_order) << choice;
    }
  }
}

} // namespace
} // namespace deepgen::invariance_test
