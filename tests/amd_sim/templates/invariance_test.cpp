// Batch invariant problems on the simulated AMD devices: kernels of one order of sums give the same bits.
#include "generator/codegen/compile.h"
#include "generator/space/space.h"
#include "tests/amd_sim/check/check.h"
#include "tests/amd_sim/check/compiled.h"
#include "tests/ptx_sim/check/equal_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace deepgen::amd_sim::invariance_test {
namespace {

struct Row {
  const char *name, *arch, *family, *problem;
};

const Row kRows[] = {
    {"mfma", "gfx942", "mfma",
     "gemm m=1..70 n=48 k=144 batch=1 a=bf16 b=bf16 d=f32 acc=f32 layout=nt epilogue=bias+residual "
     "invariant=rows align=2"},
    {"mfma_ragged", "gfx942", "mfma",
     "gemm m=1..70 n=40 k=75 batch=1 a=f16 b=f16 d=f32 acc=f32 layout=nn epilogue=none invariant=rows "
     "align=2"},
    {"wmma", "gfx1100", "wmma",
     "gemm m=1..70 n=48 k=144 batch=1 a=f16 b=f16 d=f32 acc=f32 layout=nt epilogue=none invariant=rows "
     "align=2"},
    {"simt", "gfx942", "simt",
     "gemm m=1..70 n=48 k=90 batch=1 a=bf16 b=bf16 d=f32 acc=f32 layout=nt epilogue=bias invariant=rows "
     "align=2"},
    {"gemv", "gfx942", "gemv",
     "gemm m=1..16 n=80 k=512 batch=1 a=f16 b=f16 d=f32 acc=f32 layout=nt epilogue=none invariant=rows "
     "align=2"},
};

/// Legal configs of the family, seeded, by their order of sums: those of the order that has most.
std::vector<Choice> of_one_order(const Row& row, const Gemm& p, std::string& order) {
  const deepgen::Device device = generic_gpu(row.arch);
  SearchOptions options;
  options.templates[row.family] = {};
  const Space space(p, row.arch, device, options);
  std::mt19937 random(3);
  std::map<std::string, std::vector<Choice>> orders;
  for (int i = 0; i < 400 && space.size(); ++i) {
    const Choice c = space.choice(random() % space.size());
    auto& list = orders[find_template(row.family).sum_order(p, row.arch, c.config)];
    if (std::find(list.begin(), list.end(), c) == list.end()) list.push_back(c);
  }
  std::vector<Choice> most;
  for (const auto& [name, list] : orders)
    if (list.size() > most.size()) most = list, order = name;
  return most;
}

class SumOrders : public testing::TestWithParam<Row> {};

TEST_P(SumOrders, GiveTheSameBits) {
  constexpr size_t kKernels = 4;
  const Gemm p = Gemm::parse(GetParam().problem);
  std::string order, bits;
  const std::vector<Choice> choices = of_one_order(GetParam(), p, order);
  ASSERT_GE(choices.size(), 2u);
  for (size_t i = 0; i < std::min(kKernels, choices.size()); ++i) {
    const Compiled compiled = compile(p, GetParam().arch, choices[i]);
    Report report;
    const std::string found =
        ptx_sim::equal_rows({compiled.kernel, runner(compiled.kernel, compiled.ir, report)}, {1, 7, p.m});
    EXPECT_EQ(found.find("other bits"), std::string::npos) << found << ": " << choices[i].text();
    EXPECT_EQ(found.find("fault"), std::string::npos) << found << ": " << choices[i].text();
    if (bits.empty()) bits = found;
    EXPECT_EQ(found, bits) << order << ": " << choices[i].text() << " and " << choices[0].text();
  }
}
INSTANTIATE_TEST_SUITE_P(Of, SumOrders, testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.name); });

} // namespace
} // namespace deepgen::amd_sim::invariance_test
