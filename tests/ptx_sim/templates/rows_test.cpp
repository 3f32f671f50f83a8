// Random rows and configs of gpu_rows on the simulated NVIDIA device: numbers against the f64 reference with
// special rows among them, bounds, races. More of them: PTX_SIM_ROWS=1000 PTX_SIM_SEED=7.
#include "generator/codegen/compile.h"
#include "generator/space/sample.h"
#include "tests/ptx_sim/check/rows_check.h"
#include "tests/ptx_sim/from_environment.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace deepgen::rows_test {
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
        const Rows p = Rows::parse(std::string("rows m=14 n=1048 x=bf16 d=") + d + " kind=" + kind +
                                   " options=residual+output_residual" + (norm ? "+scale+bias" : ""));
        const Config config =
            Config::parse(std::string("vec=16 lanes=64 rows=2 ") + keep + " sets=1 hint=0 resident=0");
        ASSERT_EQ(find_template("gpu_rows").why_illegal(p, generic_gpu("sm_90a"), config), "") << p.key();
        check(compiled(p, "sm_90a", {"gpu_rows", config}), 5);
      }
}

/// Several warps of a row meet at one barrier a set, and the next set's partial results must not overtake
/// what another warp still reads. No small problem has such a config in its space.
TEST(EveryKind, IsRightWhereABlockHasSeveralSets) {
  for (const char* kind : {"softmax", "log_softmax", "layer_norm", "rms_norm"})
    for (const char* config : {"vec=16 lanes=64 rows=1 hold=1 unroll=1 sets=5 hint=0 resident=0",
                               "vec=16 lanes=128 rows=2 hold=0 unroll=2 sets=3 hint=0 resident=0"})
      for (const char* d : {"bf16", "e4m3"}) {
        const Rows p =
            Rows::parse(std::string("rows m=26 n=2600 x=bf16 d=") + d + " kind=" + kind + " options=none");
        check(compiled(p, "sm_90a", {"gpu_rows", Config::parse(config)}), 6);
      }
}

/// The longest chains of additions that the space has, of squares of bf16 and of exponentials: their
/// roundings are not independent. On rows of special values too.
TEST(LongSums, AreExactWithTheFewestThreads) {
  const Template& rows = find_template("gpu_rows");
  for (const char* problem : {"rows m=14 n=8192 x=bf16 d=f32 kind=rms_norm options=none",
                              "rows m=14 n=8543 x=f16 d=e4m3 kind=log_softmax options=none",
                              "rows m=14 n=8192 x=bf16 d=f32 kind=layer_norm options=none"}) {
    const Rows p = Rows::parse(problem);
    const std::string vec = p.n % 2 ? "vec=2" : "vec=16";
    bool refused = false, found = false;
    for (int64_t lanes = 1; lanes <= 1024 && !found; lanes *= 2) {
      const Config config = Config::parse(vec + " lanes=" + std::to_string(lanes) +
                                          " rows=" + std::to_string(std::max<int64_t>(1, 64 / lanes)) +
                                          " hold=0 unroll=1 sets=1 hint=0 resident=0");
      const std::string why = rows.why_illegal(p, generic_gpu("sm_90a"), config);
      refused |= why.find("additions one after another") != std::string::npos;
      if (!why.empty()) continue;
      check(compiled(p, "sm_90a", {"gpu_rows", config}), 51);
      found = true;
    }
    EXPECT_TRUE(refused && found) << problem;
  }
}

/// What takes any alignment has chains of additions that are no longer.
TEST(LongSums, FallbacksAreLegal) {
  const Template& rows = find_template("gpu_rows");
  const Device device = generic_gpu("sm_90a");
  int lengthened = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Rows p = ptx_sim::draw_rows(seed, 9000);
    p.n = std::min(most_row_columns, p.n * (seed % 3 ? 8 : 1024) / 8 * 8);
    std::mt19937_64 random(seed);
    const auto config = draw_config(rows, p, device, random);
    ASSERT_TRUE(config) << p.key();
    for (const Choice& narrow : rows.fallbacks(p, "sm_90a", *config)) {
      EXPECT_EQ(rows.why_illegal(p, device, narrow.config).find("additions"), std::string::npos)
          << p.key() << " | " << narrow.config.text();
      lengthened +=
          narrow.config["lanes"] != (*config)["lanes"] || narrow.config["unroll"] != (*config)["unroll"];
    }
  }
  EXPECT_GT(lengthened, 3);
}

} // namespace
} // namespace deepgen::rows_test
