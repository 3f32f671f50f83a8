// Random rows and configs of gpu_rows on the simulated AMD devices. More of them: AMD_SIM_ROWS=1000
// AMD_SIM_SEED=7.
#include "base/kernel/amd.h"
#include "generator/space/sample.h"
#include "tests/amd_sim/check/check.h"
#include "tests/amd_sim/check/compiled.h"
#include "tests/ptx_sim/from_environment.h"

#include <gtest/gtest.h>

#include <iterator>
#include <sstream>

namespace deepgen::rows_test {
namespace {

constexpr int kShares = 4;

void check(const Rows& p, const std::string& arch, const Config& config, uint64_t seed) {
  const amd_sim::Compiled c = amd_sim::compile(p, arch, {"gpu_rows", config});
  for (const ptx_sim::RowsCase& each : ptx_sim::rows_cases())
    EXPECT_EQ(amd_sim::check_rows(c.kernel, c.ir, each, seed).fault, "")
        << "case '" << each.name << "', seed " << seed << ": --arch " << arch << " --problem \"" << p.key()
        << "\" --config \"gpu_rows " << config.text() << "\"";
}

/// A quarter of them each, so that ctest runs them in parallel.
class AmdRandomRows : public testing::TestWithParam<int> {};

TEST_P(AmdRandomRows, AreRightOnTheSimulatedDevice) {
  std::istringstream names(amd_archs());
  std::vector<std::string> archs(std::istream_iterator<std::string>(names), {});
  const uint64_t first = from_environment("AMD_SIM_SEED", 12) * 100000;
  const uint64_t count = from_environment("AMD_SIM_ROWS", 80);
  for (uint64_t i = uint64_t(GetParam()); i < count; i += kShares) {
    const Rows p = ptx_sim::draw_rows(first + i, i % 4 == 3 ? 9000 : 700);
    const std::string& arch = archs[i / kShares % archs.size()];
    const Template& rows = find_template("gpu_rows");
    std::mt19937_64 random(first + i);
    const auto config = draw_config(rows, p, generic_gpu(arch), random);
    ASSERT_TRUE(config) << p.key();
    check(p, arch, *config, i);
    for (const Choice& other : rows.fallbacks(p, arch, *config)) check(p, arch, other.config, i);
    if (i % 3 == 0) check(rows.awkward(p, *config).rows(), arch, *config, i);
  }
}
/// The warps of a row take the first one's shift from a lane, in waves of 64 and of 32.
TEST(AmdRows, AMeanOfSeveralWarpsIsRight) {
  const Rows p = Problem::parse("rows m=3 n=1024 x=f32 d=f32 kind=layer_norm options=none").rows();
  Config config;
  for (auto [name, value] : std::initializer_list<std::pair<const char*, int64_t>>{{"vec", 16},
                                                                                   {"lanes", 128},
                                                                                   {"rows", 1},
                                                                                   {"hold", 1},
                                                                                   {"unroll", 1},
                                                                                   {"sets", 1},
                                                                                   {"hint", 0},
                                                                                   {"resident", 0}})
    config.values.emplace_back(name, value);
  for (const char* arch : {"gfx942", "gfx1100"}) check(p, arch, config, 1);
}

INSTANTIATE_TEST_SUITE_P(Share, AmdRandomRows, testing::Range(0, kShares));

} // namespace
} // namespace deepgen::rows_test
