// Argument checks and slot values for every operand of an epilogue.
#include "runtime/arguments.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace {

using deepgen::ArgumentValues;
using deepgen::check_arguments;

constexpr int64_t kM = 6, kN = 10, kK = 4, kBatch = 3;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

uint32_t set(std::initializer_list<deepgen_epilogue> steps) {
  uint32_t bits = 0;
  for (deepgen_epilogue step : steps) bits |= 1u << step;
  return bits;
}

float as_float(uint64_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}

/// bf16 inputs, f32 scales; nothing is dereferenced, so the addresses are made up.
class Arguments : public ::testing::Test {
protected:
  deepgen_function function{};
  deepgen_gemm_args args;
  ArgumentValues values;

  static const void* at(uintptr_t address) { return reinterpret_cast<const void*>(address); }
  static void* writable(uintptr_t address) { return reinterpret_cast<void*>(address); }

  void SetUp() override {
    function.m = kM, function.n = kN, function.k = kK, function.batch = kBatch;
    function.a_rows = kM, function.a_columns = kK, function.b_rows = kK, function.b_columns = kN;
    function.a_type = function.b_type = function.d_type = function.epilogue_type = DEEPGEN_BF16;
    function.scale_type = DEEPGEN_F32;
    args.a = at(0x10000), args.b = at(0x20000), args.d = writable(0x30000);
  }
  deepgen_status check() { return check_arguments(function, args, values); }
  uint64_t slot(deepgen_arg arg) const { return values.slot[arg]; }
};

struct VectorOperand {
  deepgen_epilogue step;
  const void* deepgen_gemm_args::* pointer;
  deepgen_arg slot;
  bool is_scale;
};
constexpr VectorOperand kVectors[] = {
    {DEEPGEN_EPILOGUE_BIAS, &deepgen_gemm_args::bias, DEEPGEN_ARG_BIAS, false},
    {DEEPGEN_EPILOGUE_BIAS_ROW, &deepgen_gemm_args::bias_row, DEEPGEN_ARG_BIAS_ROW, false},
    {DEEPGEN_EPILOGUE_SCALE_A, &deepgen_gemm_args::scale_a, DEEPGEN_ARG_SCALE_A, true},
    {DEEPGEN_EPILOGUE_SCALE_B, &deepgen_gemm_args::scale_b, DEEPGEN_ARG_SCALE_B, true},
    {DEEPGEN_EPILOGUE_SCALE_ROW, &deepgen_gemm_args::scale_row, DEEPGEN_ARG_SCALE_ROW, true},
    {DEEPGEN_EPILOGUE_SCALE_COL, &deepgen_gemm_args::scale_col, DEEPGEN_ARG_SCALE_COL, true},
    {DEEPGEN_EPILOGUE_SCALE_D, &deepgen_gemm_args::scale_d, DEEPGEN_ARG_SCALE_D, true},
};

TEST_F(Arguments, GroupsWantATable) {
  function.batch = 1, function.groups = 3;
  EXPECT_EQ(check(), DEEPGEN_ERROR_NULL);
  args.offsets = static_cast<const int32_t*>(at(0x40002));
  EXPECT_EQ(check(), DEEPGEN_ERROR_ALIGNMENT);
  args.offsets = static_cast<const int32_t*>(at(0x40004));
  ASSERT_EQ(check(), DEEPGEN_OK);
  EXPECT_EQ(slot(DEEPGEN_ARG_OFFSETS), 0x40004u);
  EXPECT_EQ(slot(DEEPGEN_ARG_STRIDE_B), uint64_t(kK * kN)) << "from one group's matrix to the next";
  function.groups = 0;
  ASSERT_EQ(check(), DEEPGEN_OK);
  EXPECT_EQ(slot(DEEPGEN_ARG_OFFSETS), 0u);
}

TEST_F(Arguments, EveryVectorIsRequiredAlignedAndPassed) {
  for (const VectorOperand& v : kVectors) {
    function.epilogue = set({v.step});
    args.*v.pointer = nullptr;
    EXPECT_EQ(check(), DEEPGEN_ERROR_NULL) << v.step;
    args.*v.pointer = at(0x40001);
    EXPECT_EQ(check(), DEEPGEN_ERROR_ALIGNMENT) << v.step;
    args.*v.pointer = at(0x40002);
    EXPECT_EQ(check(), v.is_scale ? DEEPGEN_ERROR_ALIGNMENT : DEEPGEN_OK) << v.step;
    args.*v.pointer = at(0x40004);
    ASSERT_EQ(check(), DEEPGEN_OK) << v.step;
    EXPECT_EQ(slot(v.slot), 0x40004u) << v.step;
    function.epilogue = 0;
    args.*v.pointer = at(0x40001);
    ASSERT_EQ(check(), DEEPGEN_OK) << "an operand of a step that is not there is not looked at";
    EXPECT_EQ(slot(v.slot), 0u);
  }
}

struct MatrixOperand {
  uint32_t epilogue; ///< set of the step that reads it; 0: C
  const void* deepgen_gemm_args::* pointer;
  int64_t deepgen_gemm_args::* ld;
  int64_t deepgen_gemm_args::* stride;
  deepgen_arg slot, ld_slot, stride_slot;
};
constexpr MatrixOperand kMatrices[] = {
    {1u << DEEPGEN_EPILOGUE_RESIDUAL, &deepgen_gemm_args::residual, &deepgen_gemm_args::ld_residual,
     &deepgen_gemm_args::stride_residual, DEEPGEN_ARG_RESIDUAL, DEEPGEN_ARG_LD_RESIDUAL,
     DEEPGEN_ARG_STRIDE_RESIDUAL},
    {1u << DEEPGEN_EPILOGUE_MULTIPLY, &deepgen_gemm_args::multiplier, &deepgen_gemm_args::ld_multiplier,
     &deepgen_gemm_args::stride_multiplier, DEEPGEN_ARG_MULTIPLIER, DEEPGEN_ARG_LD_MULTIPLIER,
     DEEPGEN_ARG_STRIDE_MULTIPLIER},
    // C is such a matrix too, whenever beta is not 0.
    {0, &deepgen_gemm_args::c, &deepgen_gemm_args::ldc, &deepgen_gemm_args::stride_c, DEEPGEN_ARG_C,
     DEEPGEN_ARG_LDC, DEEPGEN_ARG_STRIDE_C},
};

TEST_F(Arguments, EveryMatrixIsCheckedAndPassed) {
  for (const MatrixOperand& x : kMatrices) {
    SetUp();
    args = deepgen_gemm_args{.a = args.a, .b = args.b, .d = args.d};
    function.epilogue = x.epilogue;
    args.beta = x.epilogue == 0;
    EXPECT_EQ(check(), DEEPGEN_ERROR_NULL) << x.slot;
    args.*x.pointer = at(0x50001);
    EXPECT_EQ(check(), DEEPGEN_ERROR_ALIGNMENT) << x.slot;
    args.*x.pointer = at(0x50002);
    ASSERT_EQ(check(), DEEPGEN_OK) << x.slot;
    EXPECT_EQ(slot(x.slot), 0x50002u);
    EXPECT_EQ(slot(x.ld_slot), uint64_t(kN));
    EXPECT_EQ(slot(x.stride_slot), uint64_t(kM * kN));
    args.*x.ld = kN - 1;
    EXPECT_EQ(check(), DEEPGEN_ERROR_LEADING_DIMENSION) << x.slot;
    args.*x.ld = kN + 3;
    args.*x.stride = 5; // entries of what is read may overlap
    ASSERT_EQ(check(), DEEPGEN_OK) << x.slot;
    EXPECT_EQ(slot(x.ld_slot), uint64_t(kN + 3));
    EXPECT_EQ(slot(x.stride_slot), 5u);
    args.*x.stride = DEEPGEN_BROADCAST;
    ASSERT_EQ(check(), DEEPGEN_OK) << x.slot;
    EXPECT_EQ(slot(x.stride_slot), 0u);
    args.*x.stride = -2;
    EXPECT_EQ(check(), DEEPGEN_ERROR_STRIDE) << x.slot;
    args.*x.stride = INT64_MAX / 2;
    EXPECT_EQ(check(), DEEPGEN_ERROR_STRIDE) << x.slot;
  }
}

TEST_F(Arguments, WhatIsReadBesideDIsDOrSeparate) {
  for (const MatrixOperand& x : kMatrices) {
    SetUp();
    args = deepgen_gemm_args{.a = args.a, .b = args.b, .d = args.d};
    function.epilogue = x.epilogue;
    args.beta = x.epilogue == 0;
    const uintptr_t d = 0x30000, bytes = kBatch * kM * kN * 2;
    args.*x.pointer = at(d);
    EXPECT_EQ(check(), DEEPGEN_OK) << x.slot;
    args.*x.stride = DEEPGEN_BROADCAST;
    EXPECT_EQ(check(), DEEPGEN_ERROR_OVERLAP) << "entry 0 of D is read after it was written";
    function.batch = 1;
    EXPECT_EQ(check(), DEEPGEN_OK) << "one entry: the stride does not matter";
    function.batch = kBatch, args.*x.stride = 0;
    args.*x.ld = kN + 1;
    EXPECT_EQ(check(), DEEPGEN_ERROR_OVERLAP) << x.slot;
    args.*x.ld = 0;
    for (uintptr_t address : {d + 2, d + bytes - 2, d - 2, d - bytes + 2}) {
      args.*x.pointer = at(address);
      EXPECT_EQ(check(), DEEPGEN_ERROR_OVERLAP) << x.slot << " " << address - d;
    }
    for (uintptr_t address : {d + bytes, d - bytes}) {
      args.*x.pointer = at(address);
      EXPECT_EQ(check(), DEEPGEN_OK) << x.slot << " " << address - d;
    }
    function.batch = 1, args.*x.ld = args.ldd = 2 * kN; // halves of one matrix
    args.*x.pointer = at(d + 2 * kN);
    EXPECT_EQ(check(), DEEPGEN_OK) << x.slot;
    args.*x.pointer = at(d + 2 * kN - 2);
    EXPECT_EQ(check(), DEEPGEN_ERROR_OVERLAP) << x.slot;
  }
}

TEST_F(Arguments, AResidualOfAnotherTypeIsNeverD) {
  function.d_type = DEEPGEN_I8, function.epilogue_type = DEEPGEN_F32;
  function.epilogue = set({DEEPGEN_EPILOGUE_RESIDUAL});
  args.residual = args.d;
  EXPECT_EQ(check(), DEEPGEN_ERROR_OVERLAP);
  args.residual = at(0x30000 + kBatch * kM * kN); // behind the 180 bytes of D
  EXPECT_EQ(check(), DEEPGEN_OK);
  args.residual = at(0x30000 + kBatch * kM * kN - 4);
  EXPECT_EQ(check(), DEEPGEN_ERROR_OVERLAP);
}

TEST_F(Arguments, BroadcastIsForInputsOnly) {
  args.stride_a = args.stride_b = DEEPGEN_BROADCAST;
  ASSERT_EQ(check(), DEEPGEN_OK);
  EXPECT_EQ(slot(DEEPGEN_ARG_STRIDE_A), 0u);
  EXPECT_EQ(slot(DEEPGEN_ARG_STRIDE_B), 0u);
  args.stride_d = DEEPGEN_BROADCAST;
  EXPECT_EQ(check(), DEEPGEN_ERROR_STRIDE);
}

TEST_F(Arguments, PointersAreAlignedToTheirOwnTypes) {
  function.a_type = DEEPGEN_E4M3, function.b_type = DEEPGEN_F16, function.d_type = DEEPGEN_F32;
  args.a = at(0x10001), args.b = at(0x20002), args.d = writable(0x30004);
  EXPECT_EQ(check(), DEEPGEN_OK);
  args.b = at(0x20001);
  EXPECT_EQ(check(), DEEPGEN_ERROR_ALIGNMENT);
  args.b = at(0x20002), args.d = writable(0x30002);
  EXPECT_EQ(check(), DEEPGEN_ERROR_ALIGNMENT);
}

TEST_F(Arguments, ScalarsHaveTheScaleType) {
  args.alpha = 1.5, args.beta = 0;
  ASSERT_EQ(check(), DEEPGEN_OK);
  EXPECT_EQ(slot(DEEPGEN_ARG_ALPHA), 0x3fc00000u);
  function.scale_type = DEEPGEN_F64;
  ASSERT_EQ(check(), DEEPGEN_OK);
  EXPECT_EQ(slot(DEEPGEN_ARG_ALPHA), 0x3ff8000000000000u);
  function.scale_type = DEEPGEN_I32;
  EXPECT_EQ(check(), DEEPGEN_ERROR_ARGUMENT) << "1.5 is no whole number";
  args.alpha = -3;
  ASSERT_EQ(check(), DEEPGEN_OK);
  EXPECT_EQ(slot(DEEPGEN_ARG_ALPHA), 0xfffffffdu) << "upper bytes are 0";
  for (double good : {-2147483648.0, 2147483647.0, -0.0}) {
    args.alpha = good;
    EXPECT_EQ(check(), DEEPGEN_OK) << good;
  }
  for (double bad : {2147483648.0, -2147483649.0, 1e300, HUGE_VAL, -HUGE_VAL, kNan}) {
    args.alpha = bad;
    EXPECT_EQ(check(), DEEPGEN_ERROR_ARGUMENT) << bad;
  }
  args.alpha = 1, args.beta = 0.5, args.c = args.d;
  EXPECT_EQ(check(), DEEPGEN_ERROR_ARGUMENT);
}

TEST_F(Arguments, ClampBounds) {
  function.epilogue = set({DEEPGEN_EPILOGUE_CLAMP});
  args.clamp_low = -1, args.clamp_high = 6;
  ASSERT_EQ(check(), DEEPGEN_OK);
  EXPECT_EQ(as_float(slot(DEEPGEN_ARG_CLAMP_LOW)), -1.0f);
  EXPECT_EQ(as_float(slot(DEEPGEN_ARG_CLAMP_HIGH)), 6.0f);
  args.clamp_low = 6;
  EXPECT_EQ(check(), DEEPGEN_OK);
  args.clamp_low = 6.5;
  EXPECT_EQ(check(), DEEPGEN_ERROR_ARGUMENT);
  args.clamp_low = -HUGE_VAL;
  EXPECT_EQ(check(), DEEPGEN_OK);
  args.clamp_low = kNan;
  EXPECT_EQ(check(), DEEPGEN_ERROR_ARGUMENT);
  args.clamp_low = 0, args.clamp_high = kNan;
  EXPECT_EQ(check(), DEEPGEN_ERROR_ARGUMENT);
  function.epilogue = 0;
  EXPECT_EQ(check(), DEEPGEN_OK);
}

TEST_F(Arguments, ANaNBetaReadsC) {
  args.beta = kNan;
  EXPECT_EQ(check(), DEEPGEN_ERROR_NULL);
  args.c = at(0x60000);
  EXPECT_EQ(check(), DEEPGEN_OK);
}

} // namespace
