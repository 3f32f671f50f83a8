// Random rows and configs of gpu_rows on the simulated NVIDIA device: numbers against the f64 reference with
// special rows among them, bounds, races. More of them: PTX_SIM_ROWS=1000 PTX_SIM_SEED=7.
#include "generator/codegen/compile.h"
#include "generator/space/sample.h"
#include "tests/ptx_sim/from_environment.h"
#include "tests/ptx_sim/rows_check.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace deepgen {
namespace {

constexpr int kShares = 4;
const char* const kArchs[] = {"sm_80", "sm_89", "sm_90a"};

KernelFile compiled(const Rows& p, const std::string& arch, const Choice& choice) {
  setenv("DEEPGEN_PTXAS", "none", 1); // the PTX is all that is wanted
  return compile_candidate(p, arch, choice, true, false);
}

void check(const KernelFile& file, uint64_t seed) {
  ASSERT_EQ(file.status, "ok") << file.detail << ": " << file.problem.key() << " | " << file.choice.text();
  for (const Kernel& kernel : file.kernels)
    for (const ptx_sim::RowsCase& c : ptx_sim::rows_cases())
      EXPECT_EQ(ptx_sim::check_rows(kernel, c, seed).fault, "")
          << "case '" << c.name << "', seed " << seed << ", " << kernel.role << ", " << file.arch << ": "
          << kernel.problem.key() << " | " << kernel.choice.text();
}

/// A quarter of them each, so that ctest runs them in parallel.
class RandomRows : public testing::TestWithParam<int> {};

TEST_P(RandomRows, AreRightOnTheSimulatedDevice) {
  const uint64_t first = from_environment("PTX_SIM_SEED", 3) * 100000;
  const uint64_t count = from_environment("PTX_SIM_ROWS", 80);
  for (uint64_t i = uint64_t(GetParam()); i < count; i += kShares) {
    const Rows p = ptx_sim::draw_rows(first + i, i % 4 == 3 ? 9000 : 700);
    const std::string arch = kArchs[i % std::size(kArchs)];
    std::mt19937_64 random(first + i);
    const auto config = draw_config(find_template("gpu_rows"), p, generic_gpu(arch), random);
    ASSERT_TRUE(config) << p.key();
    check(compiled(p, arch, {"gpu_rows", *config}), i);
  }
}
INSTANTIATE_TEST_SUITE_P(Share, RandomRows, testing::Range(0, kShares));

/// One of each way to keep a row, of each kind, with all that the kind may have.
TEST(EveryKind, IsRightHoweverARowIsKept) {
  for (const char* kind : {"softmax", "log_softmax", "layer_norm", "rms_norm"})
    for (const char* keep : {"hold=0 unroll=2", "hold=1 unroll=1", "hold=2 unroll=1"})
      for (const char* d : {"bf16", "e4m3", "i8"}) {
        const bool norm = std::string(kind).find("norm") != std::string::npos;
        const Rows p = Rows::parse(std::string("rows m=13 n=1048 x=bf16 d=") + d + " kind=" + kind +
                                   " options=residual+output_residual" + (norm ? "+scale+bias" : ""));
        const Config config = Config::parse(std::string("vec=16 lanes=64 rows=2 ") + keep + " sets=1 hint=0");
        ASSERT_EQ(find_template("gpu_rows").why_illegal(p, generic_gpu("sm_90a"), config), "") << p.key();
        check(compiled(p, "sm_90a", {"gpu_rows", config}), 5);
      }
}

} // namespace
} // namespace deepgen
