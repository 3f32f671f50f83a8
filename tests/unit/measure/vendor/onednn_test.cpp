// oneDNN as a baseline computes what is measured.
#include "measure/vendor/cpu/onednn.h"

#include "measure/cpu/gemm_subject.h"
#include "measure/values/reference.h"

#include <gtest/gtest.h>

#ifdef __SANITIZE_ADDRESS__
/// oneDNN keeps its primitives to the end of the process and gives them back to nobody.
extern "C" const char* __lsan_default_suppressions() { return "leak:libdnnl\n"; }
#endif

namespace deepgen::onednn_test {
namespace {

TEST(OneDnnBaseline, ComputesTheProblem) {
  const auto library = OneDnn::open();
  if (!library) GTEST_SKIP() << "no oneDNN 2";
  int computed = 0;
  for (const char* steps :
       {"none", "bias+gelu", "residual+relu+scale_col", "scale_row+bias+silu", "clamp+multiply"})
    for (const char* types :
         {"a=bf16 b=bf16 d=bf16 acc=f32 layout=nt", "a=bf16 b=bf16 d=f32 acc=f32 layout=tn",
          "a=i8 b=i8 d=f32 acc=i32 layout=nn", "a=u8 b=i8 d=i8 acc=i32 layout=nt"}) {
      Gemm p = Gemm::parse(std::string("gemm m=13 n=11 k=17 batch=1 ") + types + " epilogue=" + steps +
                           (types[2] == 'b' ? " align=2" : " align=1"));
      if (!library->serves(p)) continue; // bf16 on a CPU without AVX-512
      const Inputs in(p, 1);
      const Reference reference(p, in, 1);
      const GemmOperands operands(p, 1, 1);
      const CallBuffers x = operands.buffers();
      for (auto weights : {OneDnn::Weights::plain, OneDnn::Weights::packed}) {
        const std::function<void()> call = library->prepare(p, x, weights);
        ASSERT_TRUE(call) << p.key();
        call();
        const Comparison c =
            compare(p, reference.rows(), reference.expected(x.alpha, 0), [&](int64_t, int64_t row) {
              return static_cast<const char*>(x.d) + row * p.n * size_of(p.d);
            });
        EXPECT_TRUE(c.ok()) << p.key() << ": " << c.detail;
        ++computed;
      }
    }
  EXPECT_GT(computed, 0);
}

TEST(OneDnnBaseline, DoesNotServeGatesNorPrelu) {
  const auto library = OneDnn::open();
  if (!library) GTEST_SKIP() << "no oneDNN 2";
  EXPECT_FALSE(library->serves(Gemm::parse(
      "gemm m=4 n=8 k=16 batch=1 a=bf16 b=bf16 d=f32 acc=f32 layout=nt gate=silu epilogue=none align=2")));
  EXPECT_FALSE(library->serves(
      Gemm::parse("gemm m=4 n=8 k=16 batch=1 a=bf16 b=bf16 d=f32 acc=f32 layout=nt epilogue=prelu align=2")));
}

} // namespace
} // namespace deepgen::onednn_test
