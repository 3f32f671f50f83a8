// deepgen_verify() on kernels with and without faults.
#include "deepgen/kernel_abi.h"
#include "deepgen/runtime.h"
#include "tests/unit/runtime/gemm_operands.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

namespace {

constexpr int64_t kM = 9, kN = 14, kK = 37, kBatch = 2;
constexpr uint8_t kArgs[] = {DEEPGEN_ARG_A,        DEEPGEN_ARG_B,           DEEPGEN_ARG_C,
                             DEEPGEN_ARG_D,        DEEPGEN_ARG_BIAS,        DEEPGEN_ARG_LDA,
                             DEEPGEN_ARG_LDB,      DEEPGEN_ARG_LDC,         DEEPGEN_ARG_LDD,
                             DEEPGEN_ARG_STRIDE_A, DEEPGEN_ARG_STRIDE_B,    DEEPGEN_ARG_STRIDE_C,
                             DEEPGEN_ARG_STRIDE_D, DEEPGEN_ARG_ALPHA,       DEEPGEN_ARG_BETA,
                             DEEPGEN_ARG_RESIDUAL, DEEPGEN_ARG_LD_RESIDUAL, DEEPGEN_ARG_STRIDE_RESIDUAL};

float scalar(uint64_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}

enum Fault { kNone, kTerm, kBeta, kLast, kBeyond, kEntry } fault;

/// D = gelu(silu(alpha A Bg) * (alpha A Bu) + beta C + bias) + residual, layout tt; B holds both weights.
void gated(const uint64_t* x) {
  const auto *a = reinterpret_cast<const float*>(x[0]), *b = reinterpret_cast<const float*>(x[1]);
  const auto *c = reinterpret_cast<const float*>(x[2]), *bias = reinterpret_cast<const float*>(x[4]);
  const auto* residual = reinterpret_cast<const float*>(x[15]);
  auto* d = reinterpret_cast<float*>(x[3]);
  const float alpha = scalar(x[13]), beta = scalar(x[14]);
  for (uint64_t e = 0; e < kBatch; ++e)
    for (uint64_t i = 0; i < kM; ++i)
      for (uint64_t j = 0; j < kN; ++j) {
        if (fault == kLast && e == kBatch - 1 && i == kM - 1 && j == kN - 1) continue;
        const uint64_t of_b = fault == kEntry ? 0 : e;
        float gate = 0, up = 0;
        for (uint64_t k = fault == kTerm && i == 3 && j == 5; k < kK; ++k) {
          const float y = a[e * x[9] + k * x[5] + i];
          gate += y * b[of_b * x[10] + j * x[6] + k], up += y * b[of_b * x[10] + (kN + j) * x[6] + k];
        }
        gate *= alpha, up *= alpha;
        float v = gate / (1 + std::exp(-gate)) * up;
        if (beta != 0 && fault != kBeta) v += beta * c[e * x[11] + i * x[7] + j];
        v += bias[j];
        v = 0.5f * v * (1 + std::erf(v * float(M_SQRT1_2)));
        float* row = d + e * x[12] + i * x[8];
        row[j] = v + residual[e * x[17] + i * x[16] + j];
        if (fault == kBeyond && x[8] > kN) row[kN] = 0;
      }
}

deepgen_status verify(Fault with, std::string& text) {
  fault = with;
  deepgen_kernel kernel = {};
  kernel.arch = "cpu", kernel.config = "fake", kernel.args = kArgs, kernel.arg_count = sizeof kArgs;
  kernel.isa = 1, kernel.entry = gated;
  kernel.tiles_m = kernel.tiles_n = kernel.tiles_b = kernel.grain_m = kernel.grain_n = 1;
  const deepgen_kernel* volatile selected = nullptr;
  deepgen_function f = {};
  f.name = "fake_swiglu";
  f.problem = "gemm m=9 n=14 k=37 batch=2 a=f32 b=f32 d=f32 acc=f32 layout=tt gate=silu "
              "epilogue=bias+gelu+residual align=4";
  deepgen::RuntimeOperands operands;
  operands.set(f, deepgen::Gemm::parse(f.problem));
  f.kernels = &kernel, f.kernel_count = 1, f.selected = &selected;
  char found[256] = "?";
  const deepgen_status status = deepgen_verify(&f, found, sizeof found);
  text = found;
  EXPECT_EQ(deepgen_verify(&f, nullptr, 0), status);
  char little[8];
  EXPECT_EQ(deepgen_verify(&f, little, sizeof little), status);
  EXPECT_EQ(text.substr(0, 7), little);
  return status;
}

TEST(RuntimeVerify, AcceptsWhatIsRight) {
  std::string text;
  EXPECT_EQ(verify(kNone, text), DEEPGEN_OK);
  EXPECT_EQ(text, "fake_swiglu: 252 of 252 elements checked, all right");
}

TEST(RuntimeVerify, FindsEachFault) {
  const struct {
    Fault fault;
    const char* words;
  } faults[] = {{kTerm, "D[3, 5] of batch entry 0 is "},
                {kBeta, "D[0, 0] of batch entry 0 is "},
                {kLast, "does not write, or not finitely, D[8, 13] of batch entry 1"},
                {kBeyond, "writes beyond a row: D[0, 14]"},
                {kEntry, "of batch entry 1 is "}};
  for (const auto& one : faults) {
    std::string text;
    EXPECT_EQ(verify(one.fault, text), DEEPGEN_ERROR_WRONG_RESULT) << one.words;
    EXPECT_NE(text.find(one.words), std::string::npos) << text;
  }
}

enum Slope { kEach, kFirst, kAll } slope;

/// D = prelu(A B), as the calls of deepgen_verify() have it without padding and with.
void prelu(const uint64_t* x) {
  const auto floats = [&](int i) { return reinterpret_cast<float*>(x[i]); };
  const float alpha = scalar(x[8]), beta = scalar(x[9]);
  for (uint64_t i = 0; i < kM; ++i)
    for (uint64_t j = 0; j < kN; ++j) {
      float v = 0;
      for (uint64_t k = 0; k < kK; ++k) v += floats(0)[i * x[4] + k] * floats(1)[k * x[5] + j];
      v *= alpha;
      if (beta != 0) v += beta * floats(2)[i * x[6] + j];
      floats(3)[i * x[7] + j] = v > 0 && slope != kAll ? v : v * floats(10)[slope == kFirst ? 0 : j];
    }
}

TEST(RuntimeVerify, KnowsTheSlopesOfAPrelu) {
  constexpr uint8_t kSlots[] = {DEEPGEN_ARG_A,     DEEPGEN_ARG_B,    DEEPGEN_ARG_C,    DEEPGEN_ARG_D,
                                DEEPGEN_ARG_LDA,   DEEPGEN_ARG_LDB,  DEEPGEN_ARG_LDC,  DEEPGEN_ARG_LDD,
                                DEEPGEN_ARG_ALPHA, DEEPGEN_ARG_BETA, DEEPGEN_ARG_SLOPE};
  deepgen_kernel kernel = {};
  kernel.arch = "cpu", kernel.config = "fake", kernel.args = kSlots, kernel.arg_count = sizeof kSlots;
  kernel.isa = 1, kernel.entry = prelu;
  kernel.tiles_m = kernel.tiles_n = kernel.tiles_b = kernel.grain_m = kernel.grain_n = 1;
  const deepgen_kernel* volatile selected = nullptr;
  deepgen_function f = {};
  f.name = "fake_prelu";
  f.problem = "gemm m=9 n=14 k=37 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn epilogue=prelu align=4";
  deepgen::RuntimeOperands operands;
  operands.set(f, deepgen::Gemm::parse(f.problem));
  f.kernels = &kernel, f.kernel_count = 1, f.selected = &selected;
  for (Slope fault : {kEach, kFirst, kAll}) {
    slope = fault;
    char text[256] = "?";
    EXPECT_EQ(deepgen_verify(&f, text, sizeof text), fault == kEach ? DEEPGEN_OK : DEEPGEN_ERROR_WRONG_RESULT)
        << text;
  }
}

TEST(RuntimeVerify, NeedsAKernelOfTheCpu) {
  EXPECT_EQ(deepgen_verify(nullptr, nullptr, 0), DEEPGEN_ERROR_NULL);
  const deepgen_kernel* volatile selected = nullptr;
  deepgen_function f = {};
  f.selected = &selected;
  deepgen::RuntimeOperands operands;
  operands.set(f, deepgen::Gemm());
  const deepgen_kernel none = {};
  f.kernels = &none;
  EXPECT_EQ(deepgen_verify(&f, nullptr, 0), DEEPGEN_ERROR_NO_KERNEL);
}

enum RowsFault { kRight, kNoScale, kNextRow, kBehindTheRow, kOtherScale };
RowsFault rows_fault = kRight;

/// rms_norm of bf16 to i8, by the book.
void quantised_norm(const uint64_t* v) {
  const auto* x = reinterpret_cast<const uint16_t*>(v[0]);
  const auto* scale = reinterpret_cast<const uint16_t*>(v[1]);
  auto* d = reinterpret_cast<int8_t*>(v[2]);
  auto* row_scales = reinterpret_cast<float*>(v[3]);
  const auto value = [](uint16_t bits) { return scalar(uint64_t(bits) << 16); };
  const int64_t m = 5, n = 33, ldx = int64_t(v[4]), ldd = int64_t(v[5]);
  for (int64_t i = 0; i < m; ++i) {
    float square = 0, most = 0, y[33];
    for (int64_t j = 0; j < n; ++j) square += value(x[i * ldx + j]) * value(x[i * ldx + j]) / float(n);
    for (int64_t j = 0; j < n; ++j) {
      y[j] = value(x[i * ldx + j]) / std::sqrt(square + scalar(v[6]));
      y[j] *= rows_fault == kNoScale && i == 3 ? 1 : value(scale[j]);
      most = std::fmax(most, std::fabs(y[j]));
    }
    row_scales[i] = most / (rows_fault == kOtherScale ? 128 : 127);
    for (int64_t j = 0; j < n; ++j) d[i * ldd + j] = int8_t(std::nearbyint(y[j] / most * 127));
    if (rows_fault == kBehindTheRow && ldd > n) d[i * ldd + n] = 0;
  }
  if (rows_fault == kNextRow) d[ldd + 7] = int8_t(d[ldd + 7] + 2);
}

deepgen_status verify_rows(RowsFault with, std::string& text) {
  constexpr uint8_t args[] = {DEEPGEN_ARG_X,   DEEPGEN_ARG_SCALE, DEEPGEN_ARG_D,      DEEPGEN_ARG_ROW_SCALES,
                              DEEPGEN_ARG_LDX, DEEPGEN_ARG_LDD,   DEEPGEN_ARG_EPSILON};
  rows_fault = with;
  deepgen_kernel kernel = {};
  kernel.arch = "cpu", kernel.config = "fake", kernel.args = args, kernel.arg_count = sizeof args;
  kernel.isa = 1, kernel.entry = quantised_norm;
  kernel.tiles_m = kernel.tiles_n = kernel.tiles_b = kernel.grain_m = kernel.grain_n = 1;
  const deepgen_kernel* volatile selected = nullptr;
  deepgen_function f = {};
  f.name = "fake_norm", f.problem = "rows m=5 n=33 x=bf16 d=i8 kind=rms_norm options=scale";
  const std::vector<deepgen_operand> operands = deepgen::operand_table(deepgen::Problem::parse(f.problem));
  f.op = DEEPGEN_OP_ROWS, f.operands = operands.data(), f.operand_count = uint32_t(operands.size());
  f.kernels = &kernel, f.kernel_count = 1, f.selected = &selected;
  char found[256] = "?";
  const deepgen_status status = deepgen_verify(&f, found, sizeof found);
  text = found;
  return status;
}

TEST(RuntimeVerify, ChecksRows) {
  std::string text;
  EXPECT_EQ(verify_rows(kRight, text), DEEPGEN_OK);
  EXPECT_EQ(text, "fake_norm: 165 of 165 elements checked, all right");
  const struct {
    RowsFault fault;
    const char* words;
  } faults[] = {{kNoScale, "row_scales[3, 0] is "},
                {kNextRow, "D[1, 7] is "},
                {kBehindTheRow, "writes beyond row 0"},
                {kOtherScale, "row_scales[0, 0] is "}};
  for (const auto& one : faults) {
    EXPECT_EQ(verify_rows(one.fault, text), DEEPGEN_ERROR_WRONG_RESULT) << one.words;
    EXPECT_NE(text.find(one.words), std::string::npos) << text;
  }
}

} // namespace
