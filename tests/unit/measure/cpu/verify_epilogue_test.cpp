// Verification of epilogues with every kind of operand, on kernels that are wrong in one way each.
#include "measure/cpu/gemm_cases.h"
#include "measure/cpu/verify_all.h"
#include "measure/process/stopwatch.h"
#include "tests/unit/measure/test_kernels.h"

#include <gtest/gtest.h>

namespace deepgen::verify_epilogue_test {
namespace {

using test_kernels::as_float;
using test_kernels::Entry;

constexpr int64_t kM = 13, kN = 11, kK = 17;

const Gemm& problem() {
  static const Gemm p = Gemm::parse("gemm m=13 n=11 k=17 batch=3 a=f32 b=f32 d=f32 acc=f32 layout=nn "
                                    "epilogue=bias_row+scale_col+clamp+multiply+scale_d+residual align=4");
  return p;
}

struct Flaws {
  bool confuses_bias_row = false, confuses_scale_col = false; ///< indexed by the other coordinate
  bool residual_before_multiply = false, clamp_last = false;  ///< steps in another order
  bool one_bound = false, swaps_bounds = false;
  bool residual_after_write = false, multiplier_after_write = false; ///< D is written before they are read
  bool residual_has_ldd = false, multiplier_has_stride_d = false, c_has_ldd = false;
  bool broadcast_is_dense = false; ///< takes a batch stride of 0 for a dense one
  bool residual_of_entry_0 = false;
  bool scale_d_twice = false;
  bool writes_residual = false;
};

/// The argument block holds every slot of kernel_abi.h, in its order.
[[gnu::noipa]] void gemm(const uint64_t* x, const Flaws& flaws) {
  const auto floats = [&](deepgen_arg slot) { return reinterpret_cast<float*>(x[slot]); };
  const auto entry = [&](deepgen_arg slot, int64_t offset) {
    return floats(slot) ? floats(slot) + offset : nullptr;
  };
  const auto size = [&](deepgen_arg slot) { return int64_t(x[slot]); };
  const auto stride = [&](deepgen_arg slot, int64_t dense) {
    return size(slot) == 0 && flaws.broadcast_is_dense ? dense : size(slot);
  };
  const int64_t lda = size(DEEPGEN_ARG_LDA), ldb = size(DEEPGEN_ARG_LDB), ldd = size(DEEPGEN_ARG_LDD),
                ldc = flaws.c_has_ldd ? ldd : size(DEEPGEN_ARG_LDC),
                ldr = flaws.residual_has_ldd ? ldd : size(DEEPGEN_ARG_LD_RESIDUAL),
                ldm = size(DEEPGEN_ARG_LD_MULTIPLIER);
  const float low = as_float(x[flaws.swaps_bounds ? DEEPGEN_ARG_CLAMP_HIGH : DEEPGEN_ARG_CLAMP_LOW]);
  const float high = as_float(x[flaws.swaps_bounds ? DEEPGEN_ARG_CLAMP_LOW : DEEPGEN_ARG_CLAMP_HIGH]);
  const float alpha = as_float(x[DEEPGEN_ARG_ALPHA]), beta = as_float(x[DEEPGEN_ARG_BETA]);
  const auto clamp = [&](float v) {
    v = v < low ? low : v;
    return v > high && !flaws.one_bound ? high : v;
  };
  for (int64_t e = size(DEEPGEN_ARG_B0); e < size(DEEPGEN_ARG_B1); ++e) {
    const float* a = floats(DEEPGEN_ARG_A) + e * stride(DEEPGEN_ARG_STRIDE_A, kM * lda);
    const float* b = floats(DEEPGEN_ARG_B) + e * size(DEEPGEN_ARG_STRIDE_B);
    const float* c = entry(DEEPGEN_ARG_C, e * size(DEEPGEN_ARG_STRIDE_C));
    float* d = floats(DEEPGEN_ARG_D) + e * size(DEEPGEN_ARG_STRIDE_D);
    float* residual = floats(DEEPGEN_ARG_RESIDUAL) +
                      (flaws.residual_of_entry_0 ? 0 : e * size(DEEPGEN_ARG_STRIDE_RESIDUAL));
    const float* multiplier =
        floats(DEEPGEN_ARG_MULTIPLIER) +
        e * size(flaws.multiplier_has_stride_d ? DEEPGEN_ARG_STRIDE_D : DEEPGEN_ARG_STRIDE_MULTIPLIER);
    if (flaws.writes_residual) residual[0] = 1;
    for (int64_t i = size(DEEPGEN_ARG_M0); i < size(DEEPGEN_ARG_M1); ++i)
      for (int64_t j = size(DEEPGEN_ARG_N0); j < size(DEEPGEN_ARG_N1); ++j) {
        float v = 0;
        for (int64_t k = 0; k < kK; ++k) v += a[i * lda + k] * b[k * ldb + j];
        v *= alpha;
        if (beta != 0) v += beta * c[i * ldc + j];
        v += floats(DEEPGEN_ARG_BIAS_ROW)[flaws.confuses_bias_row ? j : i];
        v *= floats(DEEPGEN_ARG_SCALE_COL)[flaws.confuses_scale_col ? i : j];
        if (!flaws.clamp_last) v = clamp(v);
        float& out = d[i * ldd + j];
        float r = residual[i * ldr + j];
        if (flaws.multiplier_after_write) out = v;
        const float m = multiplier[i * ldm + j];
        if (flaws.residual_before_multiply) v += r;
        v *= m;
        if (flaws.residual_after_write) out = v, r = residual[i * ldr + j];
        v *= *floats(DEEPGEN_ARG_SCALE_D) * (flaws.scale_d_twice ? *floats(DEEPGEN_ARG_SCALE_D) : 1);
        if (!flaws.residual_before_multiply) v += r;
        out = flaws.clamp_last ? clamp(v) : v;
      }
  }
}

/// By a worker, as a fault ends it.
Record verify(Entry entry, const Gemm& p = problem()) {
  Candidate c;
  c.file.problem = p;
  c.file.kernels = {test_kernels::kernel_of(entry)};
  Kernel& kernel = c.file.kernels[0];
  kernel.problem = p;
  kernel.args = {DEEPGEN_ARG_NAMES};
  kernel.tiles_m = kM, kernel.tiles_n = kN, kernel.tiles_b = p.batch;
  c.record.status = "";
  GemmCases cases(p, 1);
  VerifyOptions options;
  options.deadline = wall_seconds() + 60;
  Progress progress("test");
  verify_all({&c}, cases, options, progress);
  return c.record;
}

TEST(VerifyEpilogue, AcceptsACorrectKernel) {
  const Record r = verify([](const uint64_t* x) { gemm(x, {}); });
  EXPECT_EQ(r.status, "") << r.detail;
  EXPECT_GT(r.error, 0);
}

enum class Slope { right, none, of_row, of_all, of_the_next };

/// D = prelu(alpha A B + beta C), without a batch.
template <Slope slope>
void prelu(const uint64_t* x) {
  const auto floats = [&](deepgen_arg slot) { return reinterpret_cast<float*>(x[slot]); };
  const auto size = [&](deepgen_arg slot) { return int64_t(x[slot]); };
  const float alpha = as_float(x[DEEPGEN_ARG_ALPHA]), beta = as_float(x[DEEPGEN_ARG_BETA]);
  for (int64_t i = size(DEEPGEN_ARG_M0); i < size(DEEPGEN_ARG_M1); ++i)
    for (int64_t j = size(DEEPGEN_ARG_N0); j < size(DEEPGEN_ARG_N1); ++j) {
      float v = 0;
      for (int64_t k = 0; k < kK; ++k)
        v += floats(DEEPGEN_ARG_A)[i * size(DEEPGEN_ARG_LDA) + k] *
             floats(DEEPGEN_ARG_B)[k * size(DEEPGEN_ARG_LDB) + j];
      v *= alpha;
      if (beta != 0) v += beta * floats(DEEPGEN_ARG_C)[i * size(DEEPGEN_ARG_LDC) + j];
      const int64_t at = slope == Slope::of_row ? i % kN : slope == Slope::of_the_next ? (j + 1) % kN : j;
      const float y = slope == Slope::none ? 0 : floats(DEEPGEN_ARG_SLOPE)[at];
      floats(DEEPGEN_ARG_D)[i * size(DEEPGEN_ARG_LDD) + j] = v > 0 && slope != Slope::of_all ? v : v * y;
    }
}

TEST(VerifyEpilogue, FindsWrongSlopesOfAPrelu) {
  const Gemm p =
      Gemm::parse("gemm m=13 n=11 k=17 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn epilogue=prelu align=4");
  EXPECT_EQ(verify(prelu<Slope::right>, p).status, "");
  for (Entry entry :
       {prelu<Slope::none>, prelu<Slope::of_row>, prelu<Slope::of_all>, prelu<Slope::of_the_next>})
    EXPECT_EQ(verify(entry, p).status, "wrong");
}

struct Wrong {
  const char* name;
  Entry entry;
  const char *status, *detail; ///< with the first case that shows it
};
void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.name; }
class VerifyEpilogueBad : public testing::TestWithParam<Wrong> {};
TEST_P(VerifyEpilogueBad, IsFound) {
  const Record r = verify(GetParam().entry);
  EXPECT_EQ(r.status, GetParam().status) << r.detail;
  EXPECT_NE(r.detail.find(GetParam().detail), std::string::npos) << r.detail;
}
#define BAD(flaw, status, detail)                                                                            \
  Wrong {                                                                                                    \
    #flaw, [](const uint64_t* x) { gemm(x, {.flaw = true}); }, status, detail                                \
  }
#define WRONG(flaw, in_case) BAD(flaw, "wrong", "case '" in_case "'")
INSTANTIATE_TEST_SUITE_P(
    Kernels, VerifyEpilogueBad,
    testing::Values(WRONG(confuses_bias_row, "dense"), WRONG(residual_before_multiply, "dense"),
                    WRONG(clamp_last, "dense"), WRONG(one_bound, "dense"), WRONG(swaps_bounds, "dense"),
                    WRONG(scale_d_twice, "dense"), WRONG(residual_of_entry_0, "dense"),
                    WRONG(residual_has_ldd, "padded, alpha and beta"),
                    WRONG(c_has_ldd, "padded, alpha and beta"),
                    WRONG(multiplier_has_stride_d, "padded, alpha and beta"),
                    WRONG(residual_after_write, "residual in place"),
                    WRONG(multiplier_after_write, "multiplier in place"),
                    BAD(confuses_scale_col, "out_of_bounds", "behind the end of scale_col"),
                    BAD(broadcast_is_dense, "out_of_bounds", "case 'broadcast A and B'"),
                    BAD(writes_residual, "out_of_bounds", "write to the input residual")),
    [](const auto& info) { return std::string(info.param.name); });

/// Values that are mostly beyond the bounds would hide a wrong sum.
TEST(Inputs, ClampBoundsFollowTheData) {
  for (const char* epilogue :
       {"clamp", "sigmoid+clamp", "relu+clamp", "scale_row+bias+clamp", "gelu+residual+clamp"})
    for (int64_t k : {1, 30, 4000}) {
      Gemm p = Gemm::parse("gemm m=60 n=70 k=" + std::to_string(k) +
                           " batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn epilogue=" + epilogue + " align=4");
      const Inputs inputs(p, 9);
      const Expected expected = Reference(p, inputs, 9).expected(1, 0);
      const auto inside = std::count_if(expected.value.begin(), expected.value.end(), [&](double x) {
        return x > inputs.clamp_low && x < inputs.clamp_high;
      });
      EXPECT_LT(inputs.clamp_low, inputs.clamp_high) << p.key();
      EXPECT_GT(inside, int64_t(expected.value.size()) / 3) << p.key();
      EXPECT_LT(inside, int64_t(expected.value.size()) * 9 / 10) << p.key();
    }
}

} // namespace
} // namespace deepgen::verify_epilogue_test
