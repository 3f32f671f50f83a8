// The vendor's library on the CPU, and the epilogue behind it.
#include "base/json/json.h"
#include "base/search/vendor_call.h"
#include "measure/commands/compare.h"
#include "measure/commands/vendor_facts.h"
#include "measure/cpu/gemm_subject.h"
#include "measure/values/reference.h"
#include "measure/vendor/cpu/vendor.h"
#include "measure/vendor/cpu/vendor_epilogue.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace deepgen::vendor_test {
namespace {

TEST(VendorBaseline, ComputesTheProblem) {
  const auto vendor = Vendor::open();
  if (!vendor) GTEST_SKIP() << "no OpenBLAS";
  for (const char* steps : {"epilogue=bias+gelu", "epilogue=silu", "epilogue=relu+bias_row+scale_a+scale_b",
                            "epilogue=scale_row+multiply+residual", "epilogue=clamp+scale_col+gelu_tanh",
                            "epilogue=residual+sigmoid+scale_d+multiply", "gate=silu epilogue=none",
                            "gate=gelu_tanh epilogue=bias+clamp", "epilogue=bias+prelu"})
    for (const char* rest : {"a=f32 b=f32 d=f32 acc=f32 layout=tn", "a=f64 b=f64 d=f64 acc=f64 layout=nt"}) {
      const std::string text = std::string("gemm m=13 n=11 k=17 batch=2 ") + rest + " " + steps;
      const Gemm p = Gemm::parse(text + (rest[3] == '3' ? " align=4" : " align=8"));
      const Inputs in(p, 1);
      const Reference reference(p, in, 1);
      const GemmOperands operands(p, 1, 1);
      const CallBuffers x = operands.buffers();
      vendor->prepare(p, x)();
      const Comparison c =
          compare(p, reference.rows(), reference.expected(1, 0), [&](int64_t entry, int64_t row) {
            return static_cast<const char*>(x.d) + (entry * p.m + row) * p.n * size_of(p.d);
          });
      EXPECT_TRUE(c.ok()) << p.key() << ": " << c.detail;
    }
}

/// Every activation over the whole range of its type, within what a kernel's may differ from the reference.
template <typename T>
void check_activation(EpilogueOp op) {
  Gemm p = Gemm::parse(
      sizeof(T) == 4
          ? "gemm m=1 n=4001 k=1 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn epilogue=none align=4"
          : "gemm m=1 n=4001 k=1 batch=1 a=f64 b=f64 d=f64 acc=f64 layout=nn epilogue=none align=8");
  p.epilogue = {op};
  CallBuffers x;
  x.ldd = p.n;
  const VendorEpilogue<T> epilogue(p, x);
  const double u = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53, tiny = double(std::numeric_limits<T>::min());
  for (double scale : {1e-30, 1e-3, 1.0, 5.0, 30.0, 90.0, 800.0, 1e10}) {
    std::vector<T> in(size_t(p.n)), out;
    for (size_t i = 0; i < in.size(); ++i) in[i] = T((double(i) - 1999.5) / 2000 * scale);
    out = in;
    epilogue.run(0, out.data(), nullptr);
    for (size_t i = 0; i < in.size(); ++i) {
      const double expected = apply_step(op, double(in[i]), 0, 0, 0);
      const double size = op == EpilogueOp::sigmoid ? expected : std::fabs(double(in[i]));
      ASSERT_NEAR(double(out[i]), expected, 16 * u * size + tiny) << int(op) << " of " << in[i];
    }
  }
}

TEST(VendorEpilogue, ActivationsAreRight) {
  for (EpilogueOp op :
       {EpilogueOp::gelu, EpilogueOp::gelu_tanh, EpilogueOp::silu, EpilogueOp::sigmoid, EpilogueOp::relu})
    check_activation<float>(op), check_activation<double>(op);
}

/// Rows longer than the pieces that steps are applied to, with operands of every shape.
TEST(VendorEpilogue, LongRowsArePiecesOfOnePass) {
  for (const char* steps :
       {"epilogue=bias+gelu+residual+bias_row", "epilogue=prelu", "gate=silu epilogue=scale_col+multiply"}) {
    const Gemm p = Gemm::parse(
        std::string("gemm m=3 n=2500 k=5 batch=2 a=f32 b=f32 d=f32 acc=f32 layout=nn ") + steps + " align=4");
    const Inputs in(p, 1);
    const Reference reference(p, in, 1);
    const GemmOperands operands(p, 1, 1);
    const CallBuffers x = operands.buffers();
    // Plain loops in place of the library.
    const auto *a = static_cast<const float*>(x.a), *b = static_cast<const float*>(x.b);
    auto* d = static_cast<float*>(x.d);
    const int64_t columns = p.sum_columns();
    std::vector<float> sums(size_t(p.m * columns));
    const VendorEpilogue<float> epilogue(p, x);
    for (int64_t entry = 0; entry < p.batch; ++entry) {
      for (int64_t i = 0; i < p.m; ++i)
        for (int64_t j = 0; j < columns; ++j) {
          float sum = 0;
          for (int64_t k = 0; k < p.k; ++k)
            sum += a[entry * x.stride_a + i * x.lda + k] * b[entry * x.stride_b + k * x.ldb + j];
          sums[size_t(i * columns + j)] = sum;
          if (!p.gate) d[entry * x.stride_d + i * x.ldd + j] = sum;
        }
      epilogue.run(entry, d + entry * x.stride_d, sums.data());
    }
    const Comparison c =
        compare(p, reference.rows(), reference.expected(1, 0), [&](int64_t entry, int64_t row) {
          return reinterpret_cast<const char*>(d + entry * x.stride_d + row * x.ldd);
        });
    EXPECT_TRUE(c.ok()) << p.key() << ": " << c.detail;
  }
}

ContestResult timed() {
  ContestResult r;
  r.log.environment["holdout"]["vendor"] = Json::object();
  r.finals.vendor_arm = 1;
  return r;
}

TEST(VendorFacts, HaveTheCallThatWon) {
  Gemm p;
  p.m = p.n = p.k = 64, p.a = p.b = p.d = Type::bf16, p.epilogue = {EpilogueOp::bias};
  complete(p);
  cuda::Vendor vendor;
  vendor.name = "cublaslt 13.1.0", vendor.plan = cuda::plan_vendor(p, true);
  vendor.algorithms.resize(2);
  vendor.algorithms[1].bits = {1, 2, 3, 4, 5, 6, 7, 0xabcdef}, vendor.algorithms[1].workspace = 4096;
  vendor.algorithms[1].text = "id 66";
  const auto facts = [&] {
    ContestResult r = timed();
    add_vendor_call(r, p, "sm_90a", vendor);
    return r.log.environment["holdout"]["vendor"];
  };
  const VendorCall call = vendor_call_from(facts().at("call"), "facts");
  EXPECT_EQ(call.library, "cublaslt");
  EXPECT_EQ(call.version, "13.1.0");
  EXPECT_EQ(call.text, "id 66");
  EXPECT_EQ(call.workspace, 4096);
  EXPECT_EQ(algorithm_words(call.algorithm), vendor.algorithms[1].bits);
  EXPECT_EQ(why_unusable(call, p, "sm_90a"), "");
  vendor.plan = cuda::plan_vendor(p, false); // the library did not fuse, so that a kernel ran behind it
  EXPECT_FALSE(facts().contains("call"));
  EXPECT_NE(facts().at("no_call").get<std::string>().find("bias"), std::string::npos);
  vendor.plan = cuda::plan_vendor(p, true), vendor.algorithms[1].halves = true;
  EXPECT_TRUE(facts().contains("no_call"));
  ContestResult none;
  add_vendor_call(none, p, "sm_90a", vendor);
  EXPECT_TRUE(none.log.environment.empty());
}

TEST(VendorFacts, OfHipblaslt) {
  Gemm p;
  p.m = p.n = p.k = 64, p.a = p.b = p.d = Type::bf16;
  complete(p);
  cuda::Vendor vendor;
  vendor.name = "hipblaslt 1.2.3, rocblas 5.0.0.1a2b", vendor.algorithms.resize(2);
  vendor.algorithms[1].bits = {103, 0, 1 << 26};
  const auto facts = [&] {
    ContestResult r = timed();
    add_vendor_call(r, p, "gfx942", vendor);
    return r.log.environment["holdout"]["vendor"];
  };
  const VendorCall call = vendor_call_from(facts().at("call"), "facts");
  EXPECT_EQ(call.library + " " + call.version, "hipblaslt 1.2.3");
  EXPECT_EQ(why_unusable(call, p, "gfx942"), "");
  vendor.algorithms[1].library = cuda::VendorPlan::rocblas;
  EXPECT_NE(facts().at("no_call").get<std::string>().find("another library"), std::string::npos);
  vendor.algorithms[1].library = cuda::VendorPlan::lt, vendor.plan.tf32_as_f32 = true;
  EXPECT_NE(facts().at("no_call").get<std::string>().find("tf32 as f32"), std::string::npos);
}

TEST(VendorFacts, OfTheCpu) {
  Gemm p;
  complete(p);
  ContestResult r = timed();
  add_vendor_call(r, p, "openblas 0.3.21");
  const VendorCall call = vendor_call_from(r.log.environment["holdout"]["vendor"].at("call"), "facts");
  EXPECT_EQ(call.library + " " + call.version, "openblas 0.3.21");
  EXPECT_EQ(why_unusable(call, p, "cpu"), "");
  p.a = p.b = p.d = Type::bf16;
  complete(p);
  ContestResult other = timed();
  add_vendor_call(other, p, "onednn 2.6.3");
  EXPECT_TRUE(other.log.environment["holdout"]["vendor"].contains("no_call"));
}

} // namespace
} // namespace deepgen::vendor_test
