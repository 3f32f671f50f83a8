// Batch invariant problems: the bits of a row by kernels of one order of sums, at every M, place and layout
// of D, and kernels that lie about theirs.
#include "base/search/sum_orders.h"
#include "measure/cpu/invariant_cases.h"
#include "measure/cpu/verify_all.h"
#include "tests/numerics/numerics.h"

#include <algorithm>
#include <cstring>

namespace deepgen::invariance_test {
namespace {

using namespace numerics;

Gemm invariant_problem(Rng& rng, size_t index) {
  Gemm p = random_problem(rng, index);
  p.m = between(rng, 20, 150), p.k = std::max<int64_t>(p.k, 20);
  p.least[size_t(Size::m)] = rng() % 3;
  if (index % 3 == 0) p.least[size_t(Size::k)] = 1, p.k = between(rng, 300, 700);
  p.epilogue = random_epilogue(rng);
  if (index % 4 == 1) {
    p.gate = EpilogueOp::silu;
    std::erase_if(p.epilogue,
                  [](EpilogueOp op) { return op == EpilogueOp::scale_a || op == EpilogueOp::scale_b; });
  }
  p.batch_invariant = true;
  validate(p);
  return p;
}

std::string order_of(const Gemm& p, const Choice& c) {
  return find_template(c.template_name).sum_order(p, "cpu", c.config);
}

/// Legal configs at several sizes, by their order.
std::map<std::string, std::vector<Choice>> orders_of(Rng& rng, const Gemm& p, const Device& device) {
  std::map<std::string, std::vector<Choice>> orders;
  for (int64_t m : {std::max<int64_t>(1, *p.least[0]), int64_t(9), p.m}) {
    Sizes at = p.sizes();
    at.m = m;
    const Space space(p.at(at), "cpu", device);
    for (int i = 0; i < 60 && space.size(); ++i)
      if (const Choice c = space.choice(rng() % space.size()); why_illegal(p, "cpu", device, c).empty()) {
        auto& list = orders[order_of(p, c)];
        if (std::find(list.begin(), list.end(), c) == list.end()) list.push_back(c);
      }
  }
  return orders;
}

Verdict verdict_of(const Gemm& p, const Kernel& kernel) {
  const std::unique_ptr<CaseSet> cases = subject_of(p)->cases(7);
  return cases->verify(LoadedKernel(kernel), kernel.workspace, [](const std::string&) {});
}

Kernel compiled(const Gemm& p, const Choice& choice) {
  const KernelFile file = compile_candidate(p, "cpu", choice, false, false);
  EXPECT_EQ(file.status, "ok") << file.detail;
  if (file.status != "ok") throw std::runtime_error("no kernel");
  return *file.find("main");
}

class RandomOrders : public testing::TestWithParam<int> {};

TEST_P(RandomOrders, GiveTheSameBits) {
  constexpr int kProblems = 4;
  constexpr size_t kKernels = 4;
  Rng rng(6000 + uint32_t(GetParam()));
  for (int i = 0; i < kProblems; ++i) {
    const Gemm p = invariant_problem(rng, size_t(GetParam() * kProblems + i));
    const Device device = device_of_level(std::min(host_level(), pick(rng, {4, 3, 1})));
    std::map<std::string, std::vector<Choice>> orders = orders_of(rng, p, device);
    const auto most = std::max_element(orders.begin(), orders.end(), [](const auto& x, const auto& y) {
      return x.second.size() < y.second.size();
    });
    ASSERT_NE(most, orders.end()) << p.key();
    SCOPED_TRACE(p.key() + " | " + most->first);
    std::string bits;
    for (size_t j = 0; j < std::min(kKernels, most->second.size()); ++j) {
      const Kernel kernel = compiled(p, most->second[j]);
      EXPECT_EQ(kernel.sum_order, most->first);
      const Verdict v = verdict_of(p, kernel);
      ASSERT_EQ(v.status, "ok") << kernel.choice.text() << ": " << v.detail;
      EXPECT_EQ(v.row_bits.size(), 32u);
      if (bits.empty()) bits = v.row_bits;
      EXPECT_EQ(v.row_bits, bits) << kernel.choice.text() << " and " << most->second[0].text();
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Share, RandomOrders, testing::Range(0, 3));

Config config(const std::string& text) { return Config::parse(text); }

constexpr const char* kLong = "gemm m=1..40 n=48 k=512 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt "
                              "epilogue=none invariant=rows align=4";
constexpr const char* kWhole = "isa=3 form=0 mr=4 nv=2 kc=512 ku=4 pack=2 mc=40 nc=48 loops=0 prefetch=0";
constexpr const char* kBlocks = "isa=3 form=0 mr=4 nv=2 kc=256 ku=4 pack=2 mc=40 nc=48 loops=0 prefetch=0";

/// Orders that differ give other bits: what is compared can tell them apart.
TEST(Invariance, OrdersAreToldApart) {
  if (host_level() < 3) GTEST_SKIP() << "for AVX2";
  const Gemm p = Gemm::parse(kLong);
  const Kernel whole = compiled(p, {"cpu_tile", config(kWhole)}),
               blocks = compiled(p, {"cpu_tile", config(kBlocks)});
  EXPECT_NE(whole.sum_order, blocks.sum_order);
  EXPECT_NE(verdict_of(p, whole).row_bits, verdict_of(p, blocks).row_bits);
}

/// A template that lies about its order, in one file and across files.
TEST(Invariance, ALieAboutTheOrderIsFound) {
  if (host_level() < 3) GTEST_SKIP() << "for AVX2";
  const Gemm p = Gemm::parse(kLong);
  KernelFile file = compile_candidate(p, "cpu", {"cpu_tile", config(kWhole)}, false, false);
  ASSERT_EQ(file.status, "ok") << file.detail;
  Kernel liar = compiled(p, {"cpu_tile", config(kBlocks)});
  liar.sum_order = file.kernels[0].sum_order;
  KernelFile alone = file;
  alone.kernels = {liar};
  file.kernels.push_back(liar);

  std::vector<Candidate> candidates(2);
  candidates[0].file = file, candidates[1].file = alone;
  std::vector<Candidate*> list;
  for (Candidate& c : candidates) c.record.status.clear(), list.push_back(&c);
  const std::unique_ptr<CaseSet> cases = subject_of(p)->cases(7);
  VerifyOptions options;
  options.device_isa = host_level(), options.deadline = 1e18;
  Progress progress("test");
  verify_all(list, *cases, options, progress);
  EXPECT_EQ(candidates[0].record.status, "varies");
  EXPECT_NE(candidates[0].record.detail.find("adds up in the same order"), std::string::npos)
      << candidates[0].record.detail;
  EXPECT_TRUE(candidates[1].open()) << "alone nobody can tell: " << candidates[1].record.detail;
  EXPECT_EQ(candidates[1].record.row_bits.size(), 32u);
}

TEST(Invariance, EqualRowsTellWhereBitsDiffer) {
  EqualRows rows;
  const float first[] = {1, 2, 3}, other[] = {1, 2, 4};
  const auto add = [&](const float* row, int64_t m, int64_t place) {
    return rows.add("dense", {m, 3, 5, 1}, place, reinterpret_cast<const char*>(row), 12, 4);
  };
  EXPECT_EQ(add(first, 1, 0), "");
  EXPECT_EQ(add(first, 7, 6), "");
  EXPECT_EQ(add(other, 7, 3),
            "row 3 of m=7 n=3 k=5 batch=1 (dense) has other bits than row 0 of m=1 n=3 k=5 batch=1 (dense), "
            "first in column 2");
  rows.next();
  EXPECT_EQ(add(other, 7, 3), "");
}

/// Calls of a range and of a fixed M; with other ranges; none that takes long.
TEST(Invariance, CallsHaveRowsAtManyPlaces) {
  Gemm p = Gemm::parse(kLong);
  const std::vector<InvariantCalls> calls = invariant_calls(p, 1e9);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].calls.front().m, 1);
  EXPECT_EQ(calls[0].calls.back().m, 40);
  EXPECT_GE(calls[0].places.size(), 6u);
  EXPECT_EQ(calls[0].places.back(), 39);

  p.least = {}, p.m = 9;
  ASSERT_EQ(invariant_calls(p, 1e9).size(), 1u);
  EXPECT_EQ(invariant_calls(p, 1e9)[0].places, (std::vector<int64_t>{0, 3, 4, 5, 8}));
  EXPECT_TRUE(invariant_calls(p, 1e3).empty());

  p = Gemm::parse("gemm m=0..4096 n=1..9000 k=1..100000 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn "
                  "epilogue=none invariant=rows align=4");
  const std::vector<InvariantCalls> ranged = invariant_calls(p, 1e9);
  EXPECT_EQ(ranged.size(), 2u);
  for (const InvariantCalls& each : ranged)
    for (const Sizes& sizes : each.calls) {
      EXPECT_TRUE(p.takes(sizes));
      EXPECT_LE(p.at(sizes).flops(), 1e9);
      EXPECT_EQ(sizes.k, each.calls[0].k);
    }
}

} // namespace
} // namespace deepgen::invariance_test
