// hipBLASLt and rocBLAS as baselines, with fakes of both that multiply on the host: what is asked of them
// computes what the problem says.
#include "tests/unit/runtime/amd/hip_devices.h"

#include "measure/devices/cuda_devices.h"
#include "measure/gpu/cuda_verify.h"
#include "measure/values/groups.h"
#include "measure/vendor/gpu/cuda_vendor.h"
#include "measure/vendor/gpu/vendor_product.h"
#include "tests/paths.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>

/// A measuring worker is a process that ends without freeing what it has on the device; here it lives in the
/// test's own.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:deepgen::cuda::Bench::open\nleak:RocblasProduct\n";
}

namespace deepgen::cuda::hip_vendor_test {
namespace {

namespace tests = deepgen::hip_tests;
using enum Type;
using enum EpilogueOp;

Gemm problem(Type a, Type d, Layout layout, const std::vector<EpilogueOp>& epilogue = {}, int64_t batch = 1) {
  Gemm p;
  p.m = 33, p.n = 20, p.k = 17, p.batch = batch, p.a = p.b = a, p.d = d, p.layout = layout,
  p.epilogue = epilogue;
  complete(p);
  return p;
}

class HipVendor : public ::testing::Test {
protected:
  void SetUp() override {
    setenv("DEEPGEN_HIP_DRIVER", paths::fake_hip, 1);
    attach(tests::mi300x());
    use(Platform::hip);
  }
  void TearDown() override { use(Platform::cuda); }

  static void attach(fake_hip::Device device) {
    device.memory = 100000; // for few sets of operands
    fake_hip::reset({device});
  }

  /// Holds every algorithm against the reference.
  static Vendor verified(const Gemm& p) {
    Bench bench(p, devices(Platform::hip).at(0), 0, 1);
    const Vendor v = ask_vendor(bench.ring());
    Kernel k;
    k.problem = p, k.align_a = k.align_b = k.align_d = 16;
    Verifier verifier(bench.ring().context(), bench.ring().tools(), 1);
    for (const Vendor::Algorithm& a : v.algorithms) {
      const Verdict one =
          verifier.verify_call(k, vendor_call(v.plan, a, bench.ring()), call_cases(p).front());
      EXPECT_EQ(one.status, "ok") << a.text << ": " << one.detail << " of " << p.key();
    }
    for (const std::string& complaint : fake_hip::state().complaints)
      ADD_FAILURE() << complaint << " of " << p.key();
    return v;
  }
};

constexpr size_t kOfHipblaslt = 3; ///< algorithms of the fake that work

TEST_F(HipVendor, ComputesWhatTheProblemSays) {
  for (Layout l : {Layout::nn, Layout::nt, Layout::tn, Layout::tt})
    for (const Gemm& p :
         {problem(f32, f32, l), problem(bf16, bf16, l), problem(f16, f32, l), problem(f16, f16, l, {}, 3)}) {
      const Vendor v = verified(p);
      EXPECT_EQ(v.algorithms.size(), kOfHipblaslt + 1) << v.why_not << " of " << p.key();
      EXPECT_EQ(v.name, "hipblaslt 1.2.3, rocblas 5.0.2.1234");
      EXPECT_EQ(v.algorithms.back().text, "rocBLAS");
    }
  EXPECT_EQ(verified(problem(i8, i32, Layout::nt)).algorithms.size(), kOfHipblaslt + 1);
  EXPECT_GT(fake_hip::state().calls["hipblasLtMatmul"], 0);
}

TEST_F(HipVendor, FusesWhatHipblasLtHas) {
  for (const std::vector<EpilogueOp>& e : std::vector<std::vector<EpilogueOp>>{
           {bias}, {relu}, {bias, relu}, {bias, gelu_tanh}, {bias, residual, relu}}) {
    const Vendor v = verified(problem(bf16, bf16, Layout::nt, e));
    EXPECT_EQ(v.algorithms.size(), kOfHipblaslt) << "rocBLAS fuses none of it: " << v.why_not;
    EXPECT_EQ(v.name, "hipblaslt 1.2.3");
    EXPECT_FALSE(v.plan.separate()) << v.plan.text();
  }
  EXPECT_EQ(verified(problem(f16, f16, Layout::nn, {bias, relu}, 3)).algorithms.size(), kOfHipblaslt);
  EXPECT_EQ(verified(problem(f32, f32, Layout::tn, {residual})).algorithms.size(), kOfHipblaslt + 1)
      << "both add C";
}

TEST_F(HipVendor, WhatIsLeftIsNotTimed) {
  const auto asked = [](const Gemm& p) {
    Bench bench(p, devices(Platform::hip).at(0), 0, 1);
    return ask_vendor(bench.ring());
  };
  Vendor v = asked(problem(bf16, bf16, Layout::nt, {bias, silu}));
  EXPECT_EQ(v.plan.text(), "fused bias, without silu");
  EXPECT_EQ(v.name, "hipblaslt 1.2.3 without silu") << "as records and locks have it";
  EXPECT_EQ(v.algorithms.size(), kOfHipblaslt);
  v = asked(problem(bf16, bf16, Layout::nt, {silu}));
  EXPECT_EQ(v.plan.text(), "without silu");
  EXPECT_EQ(v.algorithms.size(), kOfHipblaslt + 1) << "rocBLAS leaves the same";
  EXPECT_EQ(asked(problem(i8, bf16, Layout::nt, {scale_row})).plan.text(), "without scale_row");
  Gemm gated = problem(bf16, bf16, Layout::nt);
  gated.gate = silu;
  complete(gated);
  EXPECT_EQ(asked(gated).plan.text(), "without the gate");
  EXPECT_TRUE(fake_hip::state().complaints.empty());
}

/// Sees what a kernel behind the product would.
class Watch final : public Toolbox {
public:
  explicit Watch(const Context& context) : Toolbox(context, WithoutKernels{}) {}
  void epilogue(const Array& source, const Array&, const EpilogueParameters&) const override {
    product = source;
  }
  mutable Array product;
};

TEST_F(HipVendor, AProductForEachWeightOfAGateIsTheSameProduct) {
  for (Layout l : {Layout::nn, Layout::nt, Layout::tn, Layout::tt})
    for (int64_t batch : {1, 3}) {
      Gemm p = problem(bf16, f32, l, {}, batch);
      p.gate = silu;
      Bench bench(p, devices(Platform::hip).at(0), 0, 1);
      const Context& context = bench.ring().context();
      const Watch watch(context);
      const auto values = [&](bool halves) {
        VendorPlan plan = plan_vendor(p, true);
        plan.alone = false, plan.halves = halves;
        const auto product = VendorProduct::make(p, plan, bench.ring().operands());
        product->enqueue(product->algorithms().front(), 0, bench.ring().operands(), watch, context.stream());
        context.synchronize();
        std::vector<float> out(size_t(watch.product.batch * watch.product.rows * watch.product.columns));
        check(driver()->cuMemcpyDtoH(out.data(), watch.product.data, out.size() * sizeof(float)),
              "reading the product");
        return out;
      };
      const std::vector<float> at_once = values(false);
      EXPECT_EQ(at_once.size(), size_t(batch * 33 * 40));
      EXPECT_LT(std::count(at_once.begin(), at_once.end(), 0.0f), 10);
      EXPECT_EQ(values(true), at_once) << p.key();
    }
  EXPECT_EQ(fake_hip::state().complaints, std::vector<std::string>());
}

TEST_F(HipVendor, BothWaysForAGateAreAsked) {
  Gemm p = problem(bf16, bf16, Layout::nt);
  p.gate = silu;
  const auto in_halves = [&] {
    const Vendor v = find_vendor(p, devices(Platform::hip).at(0), 1);
    for (const Vendor::Algorithm& a : v.algorithms)
      EXPECT_EQ(a.text.starts_with("a product for each weight"), a.halves);
    return std::pair(v.algorithms.size(), std::count_if(v.algorithms.begin(), v.algorithms.end(),
                                                        [](const Vendor::Algorithm& a) { return a.halves; }));
  };
  EXPECT_EQ(in_halves(), std::pair(2 * kOfHipblaslt + 1, ptrdiff_t(kOfHipblaslt))) << "rocBLAS has one way";
  p.groups = 3;
  EXPECT_EQ(in_halves().second, 2) << "of two loops over the groups";
}

TEST_F(HipVendor, TypesByLibraryAndChip) {
  const Vendor doubles = verified(problem(f64, f64, Layout::tt, {}, 2));
  EXPECT_EQ(doubles.name, "rocblas 5.0.2.1234") << "hipBLASLt has no f64";
  EXPECT_EQ(doubles.algorithms.size(), 1u);
  EXPECT_FALSE(verified(problem(tf32, f32, Layout::nt)).plan.tf32_as_f32);
  const Vendor none = verified(problem(e4m3, bf16, Layout::nt));
  EXPECT_TRUE(none.algorithms.empty());
  EXPECT_EQ(none.why_not, "hipblaslt 1.2.3 has no algorithm for this problem; rocBLAS has no 8-bit floats");
  attach({.target = "gfx950:sramecc+:xnack-", .name = "AMD Instinct MI355X", .compute_units = 256});
  EXPECT_EQ(verified(problem(e4m3, bf16, Layout::nn, {scale_a, scale_b})).algorithms.size(), kOfHipblaslt);
  EXPECT_EQ(verified(problem(e5m2, f32, Layout::nt)).algorithms.size(), kOfHipblaslt);
  EXPECT_TRUE(verified(problem(tf32, f32, Layout::nt)).plan.tf32_as_f32) << "the fake has none there";
}

/// How many different addresses each operand has in a ring.
struct Places {
  size_t sets;
  std::set<Address> a, b, d, residual, workspace, offsets;
  Places(const Gemm& p, Caches caches) {
    Bench bench(p, devices(Platform::hip).at(0), 256, 1, caches);
    sets = bench.ring().sets().size();
    for (const CallOperands& x : bench.ring().sets())
      a.insert(x.a.data), b.insert(x.b.data), d.insert(x.d.data),
          residual.insert(x.step(EpilogueOp::residual).data), workspace.insert(x.workspace),
          offsets.insert(x.offsets);
  }
};

TEST_F(HipVendor, OperandsTakeTurnsWhereTheCachesAreToBeCold) {
  Gemm p = problem(f32, f32, Layout::nt, {residual});
  const Places cold(p, Caches::cold), weights(p, Caches::weights_cold), warm(p, Caches::warm);
  ASSERT_GE(cold.sets, 2u);
  for (const auto* found : {&cold.a, &cold.b, &cold.d, &cold.residual, &cold.workspace})
    EXPECT_EQ(found->size(), cold.sets);
  EXPECT_GT(weights.sets, cold.sets) << "of B alone there is room for more";
  EXPECT_EQ(weights.b.size(), weights.sets);
  for (const auto* found : {&weights.a, &weights.d, &weights.residual, &weights.workspace})
    EXPECT_EQ(found->size(), 1u);
  EXPECT_EQ(warm.sets, 1u);
  p = problem(f32, f32, Layout::nt);
  p.groups = 2, p.m = 8;
  complete(p);
  const Places groups(p, Caches::warm);
  EXPECT_EQ(groups.offsets.size(), size_t(timed_sharings)) << "rows are shared evenly and unevenly in turn";
  for (const auto* found : {&groups.a, &groups.b, &groups.d, &groups.workspace}) EXPECT_EQ(found->size(), 1u);
}

/// As the playoff does it: asked in a child process, timed beside kernels.
TEST_F(HipVendor, IsTimed) {
  fake_hip::state().recording = fake_hip::state().replays = false;
  const Gemm p = problem(f32, f32, Layout::nt, {residual});
  const Device device = devices(Platform::hip).at(0);
  const Vendor v = find_vendor(p, device, 1);
  ASSERT_EQ(v.algorithms.size(), kOfHipblaslt + 1) << v.why_not;
  EXPECT_TRUE(v.plan.fused_residual);
  EXPECT_EQ(v.plan.library, VendorPlan::lt);
  Bench bench(p, device, 0, 1);
  const std::vector<Arm> arms = vendor_arms(v, bench);
  EXPECT_EQ(arms[2].name, "hipblaslt 1.2.3, rocblas 5.0.2.1234 algorithm 2");
  EXPECT_NEAR(arms[0].make_sampler().take().seconds, 12e-6, 1e-9) << "of made-up time";
  EXPECT_NEAR(arms[3].make_sampler().take().seconds, 11e-6, 1e-9);
}

} // namespace
} // namespace deepgen::cuda::hip_vendor_test
