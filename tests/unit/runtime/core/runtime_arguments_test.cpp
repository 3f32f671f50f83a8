// Argument checks and slot values for every operand.
#include "runtime/core/arguments.h"
#include "tests/unit/runtime/gemm_operands.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace {

using deepgen::ArgumentValues;
using deepgen::check_arguments;
using deepgen::EpilogueOp;
using deepgen::Gemm;
using deepgen::Type;

constexpr int64_t kM = 6, kN = 10, kK = 4, kBatch = 3;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

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

  deepgen::RuntimeOperands operands;

  void SetUp() override {
    Gemm p;
    p.m = kM, p.n = kN, p.k = kK, p.batch = kBatch, p.a = p.b = p.d = Type::bf16;
    operands.set(function, p);
    args.a = at(0x10000), args.b = at(0x20000), args.d = writable(0x30000);
  }
  template <typename Change>
  void change(Change change) {
    operands.change(function, change);
  }
  void set_epilogue(std::vector<EpilogueOp> steps) {
    change([&](Gemm& p) { p.epilogue = steps; });
  }
  deepgen_status check() { return check_arguments(function, deepgen::call_arguments(args), values); }
  uint64_t slot(deepgen_arg arg) const { return values.slot[arg]; }
};

struct VectorOperand {
  EpilogueOp step;
  const void* deepgen_gemm_args::* pointer;
  deepgen_arg slot;
  bool is_scale;
};
constexpr VectorOperand kVectors[] = {
    {EpilogueOp::bias, &deepgen_gemm_args::bias, DEEPGEN_ARG_BIAS, false},
    {EpilogueOp::bias_row, &deepgen_gemm_args::bias_row, DEEPGEN_ARG_BIAS_ROW, false},
    {EpilogueOp::scale_a, &deepgen_gemm_args::scale_a, DEEPGEN_ARG_SCALE_A, true},
    {EpilogueOp::scale_b, &deepgen_gemm_args::scale_b, DEEPGEN_ARG_SCALE_B, true},
    {EpilogueOp::scale_row, &deepgen_gemm_args::scale_row, DEEPGEN_ARG_SCALE_ROW, true},
    {EpilogueOp::scale_col, &deepgen_gemm_args::scale_col, DEEPGEN_ARG_SCALE_COL, true},
    {EpilogueOp::scale_d, &deepgen_gemm_args::scale_d, DEEPGEN_ARG_SCALE_D, true},
    {EpilogueOp::prelu, &deepgen_gemm_args::slope, DEEPGEN_ARG_SLOPE, false},
};

TEST_F(Arguments, GroupsWantATable) {
  change([](Gemm& p) { p.batch = 1, p.groups = 3; });
  EXPECT_EQ(check(), DEEPGEN_ERROR_NULL);
  args.offsets = static_cast<const int32_t*>(at(0x40002));
  EXPECT_EQ(check(), DEEPGEN_ERROR_ALIGNMENT);
  args.offsets = static_cast<const int32_t*>(at(0x40004));
  ASSERT_EQ(check(), DEEPGEN_OK);
  EXPECT_EQ(slot(DEEPGEN_ARG_OFFSETS), 0x40004u);
  EXPECT_EQ(slot(DEEPGEN_ARG_STRIDE_B), uint64_t(kK * kN)) << "from one group's matrix to the next";
  change([](Gemm& p) { p.groups = 0; });
  ASSERT_EQ(check(), DEEPGEN_OK);
  EXPECT_EQ(slot(DEEPGEN_ARG_OFFSETS), 0u);
}

TEST_F(Arguments, EveryVectorIsRequiredAlignedAndPassed) {
  for (const VectorOperand& v : kVectors) {
    set_epilogue({v.step});
    args.*v.pointer = nullptr;
    EXPECT_EQ(check(), DEEPGEN_ERROR_NULL) << to_string(v.step);
    args.*v.pointer = at(0x40001);
    EXPECT_EQ(check(), DEEPGEN_ERROR_ALIGNMENT) << to_string(v.step);
    args.*v.pointer = at(0x40002);
    EXPECT_EQ(check(), v.is_scale ? DEEPGEN_ERROR_ALIGNMENT : DEEPGEN_OK) << to_string(v.step);
    args.*v.pointer = at(0x40004);
    ASSERT_EQ(check(), DEEPGEN_OK) << to_string(v.step);
    EXPECT_EQ(slot(v.slot), 0x40004u) << to_string(v.step);
    set_epilogue({});
    args.*v.pointer = at(0x40001);
    ASSERT_EQ(check(), DEEPGEN_OK) << "an operand of a step that is not there is not looked at";
    EXPECT_EQ(slot(v.slot), 0u);
  }
}

struct MatrixOperand {
  std::optional<EpilogueOp> step; ///< that reads it; none: C
  const void* deepgen_gemm_args::* pointer;
  int64_t deepgen_gemm_args::* ld;
  int64_t deepgen_gemm_args::* stride;
  deepgen_arg slot, ld_slot, stride_slot;
};
constexpr MatrixOperand kMatrices[] = {
    {EpilogueOp::residual, &deepgen_gemm_args::residual, &deepgen_gemm_args::ld_residual,
     &deepgen_gemm_args::stride_residual, DEEPGEN_ARG_RESIDUAL, DEEPGEN_ARG_LD_RESIDUAL,
     DEEPGEN_ARG_STRIDE_RESIDUAL},
    {EpilogueOp::multiply, &deepgen_gemm_args::multiplier, &deepgen_gemm_args::ld_multiplier,
     &deepgen_gemm_args::stride_multiplier, DEEPGEN_ARG_MULTIPLIER, DEEPGEN_ARG_LD_MULTIPLIER,
     DEEPGEN_ARG_STRIDE_MULTIPLIER},
    // C is such a matrix too, whenever beta is not 0.
    {std::nullopt, &deepgen_gemm_args::c, &deepgen_gemm_args::ldc, &deepgen_gemm_args::stride_c,
     DEEPGEN_ARG_C, DEEPGEN_ARG_LDC, DEEPGEN_ARG_STRIDE_C},
};

TEST_F(Arguments, EveryMatrixIsCheckedAndPassed) {
  for (const MatrixOperand& x : kMatrices) {
    SetUp();
    args = deepgen_gemm_args{.a = args.a, .b = args.b, .d = args.d};
    if (x.step) set_epilogue({*x.step});
    args.beta = !x.step;
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
    if (x.step) set_epilogue({*x.step});
    args.beta = !x.step;
    const uintptr_t d = 0x30000, bytes = kBatch * kM * kN * 2;
    args.*x.pointer = at(d);
    EXPECT_EQ(check(), DEEPGEN_OK) << x.slot;
    args.*x.stride = DEEPGEN_BROADCAST;
    EXPECT_EQ(check(), DEEPGEN_ERROR_OVERLAP) << "entry 0 of D is read after it was written";
    change([](Gemm& p) { p.batch = 1; });
    EXPECT_EQ(check(), DEEPGEN_OK) << "one entry: the stride does not matter";
    change([](Gemm& p) { p.batch = kBatch; });
    args.*x.stride = 0;
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
    change([](Gemm& p) { p.batch = 1; });
    args.*x.ld = args.ldd = 2 * kN; // halves of one matrix
    args.*x.pointer = at(d + 2 * kN);
    EXPECT_EQ(check(), DEEPGEN_OK) << x.slot;
    args.*x.pointer = at(d + 2 * kN - 2);
    EXPECT_EQ(check(), DEEPGEN_ERROR_OVERLAP) << x.slot;
  }
}

TEST_F(Arguments, AResidualOfAnotherTypeIsNeverD) {
  change([](Gemm& p) { p.a = p.b = p.d = Type::i8, p.epilogue = {EpilogueOp::residual}; });
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
  change([](Gemm& p) { p.a = Type::e4m3, p.b = Type::f16, p.d = Type::f32; });
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
  operands.set_scalar_type(DEEPGEN_F64);
  ASSERT_EQ(check(), DEEPGEN_OK);
  EXPECT_EQ(slot(DEEPGEN_ARG_ALPHA), 0x3ff8000000000000u);
  operands.set_scalar_type(DEEPGEN_I32);
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
  set_epilogue({EpilogueOp::clamp});
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
  set_epilogue({});
  EXPECT_EQ(check(), DEEPGEN_OK);
}

TEST_F(Arguments, ANaNBetaReadsC) {
  args.beta = kNan;
  EXPECT_EQ(check(), DEEPGEN_ERROR_NULL);
  args.c = at(0x60000);
  EXPECT_EQ(check(), DEEPGEN_OK);
}

/// A function of rows; nothing is dereferenced.
class RowsArguments : public ::testing::Test {
protected:
  static constexpr uintptr_t kX = 0x10000, kResidual = 0x20000, kD = 0x30000, kOut = 0x40000;
  deepgen_function function{};
  deepgen_rows_args args;
  ArgumentValues values;
  std::vector<deepgen_operand> table;

  void set(const char* key) {
    table = operand_table(deepgen::Problem::parse(key));
    function.op = DEEPGEN_OP_ROWS, function.operands = table.data(),
    function.operand_count = uint32_t(table.size());
  }
  void SetUp() override {
    set("rows m=4 n=32 x=bf16 d=bf16 kind=rms_norm options=residual+output_residual+scale");
    args.x = at(kX), args.residual = at(kResidual), args.d = at(kD), args.residual_out = at(kOut);
    args.scale = at(0x50000);
  }
  static void* at(uintptr_t address) { return reinterpret_cast<void*>(address); }
  deepgen_status check() { return check_arguments(function, deepgen::call_arguments(args), values); }
};

TEST_F(RowsArguments, AreCheckedAndPassed) {
  ASSERT_TRUE(deepgen::has_good_operands(function));
  args.ldd = 40;
  ASSERT_EQ(check(), DEEPGEN_OK);
  EXPECT_EQ(values.slot[DEEPGEN_ARG_X], kX);
  EXPECT_EQ(values.slot[DEEPGEN_ARG_LDX], 32u) << "0 is dense";
  EXPECT_EQ(values.slot[DEEPGEN_ARG_LDD], 40u);
  EXPECT_EQ(values.slot[DEEPGEN_ARG_RESIDUAL_OUT], kOut);
  EXPECT_EQ(values.slot[DEEPGEN_ARG_SCALE], 0x50000u);
  EXPECT_FLOAT_EQ(as_float(values.slot[DEEPGEN_ARG_EPSILON]), 1e-5f);
  EXPECT_EQ(values.slot[DEEPGEN_ARG_BIAS], 0u) << "the function has none";
  args.ld_residual = 31;
  EXPECT_EQ(check(), DEEPGEN_ERROR_LEADING_DIMENSION);
  args.ld_residual = 0, args.scale = nullptr;
  EXPECT_EQ(check(), DEEPGEN_ERROR_NULL);
  args.scale = at(0x50001);
  EXPECT_EQ(check(), DEEPGEN_ERROR_ALIGNMENT);
  args.scale = at(0x50002);
  for (double bad : {-1e-9, double(HUGE_VAL), kNan}) {
    args.epsilon = bad;
    EXPECT_EQ(check(), DEEPGEN_ERROR_ARGUMENT) << bad;
  }
  args.epsilon = 0;
  EXPECT_EQ(check(), DEEPGEN_OK);
}

TEST_F(RowsArguments, OutputsMayBeInputsButNotEachOther) {
  args.d = at(kX), args.residual_out = at(kResidual);
  EXPECT_EQ(check(), DEEPGEN_OK);
  args.d = at(kResidual), args.residual_out = at(kX);
  EXPECT_EQ(check(), DEEPGEN_OK);
  args.d = args.residual_out = at(kOut);
  EXPECT_EQ(check(), DEEPGEN_ERROR_OVERLAP);
  args.d = at(kOut + 2 * 32 * 4 - 2);
  EXPECT_EQ(check(), DEEPGEN_ERROR_OVERLAP) << "its last element is the other's first";
  args.d = at(kOut + 2 * 32 * 4);
  EXPECT_EQ(check(), DEEPGEN_OK);
  args.d = at(kX + 2);
  EXPECT_EQ(check(), DEEPGEN_ERROR_OVERLAP);
  args.d = at(kX), args.ldd = 40;
  EXPECT_EQ(check(), DEEPGEN_ERROR_OVERLAP) << "other rows";
}

TEST_F(RowsArguments, AQuantisedDIsNeverX) {
  set("rows m=4 n=32 x=bf16 d=e4m3 kind=softmax options=none");
  EXPECT_EQ(check(), DEEPGEN_ERROR_NULL) << "row_scales";
  args.row_scales = at(0x60004);
  EXPECT_EQ(check(), DEEPGEN_OK);
  EXPECT_EQ(values.slot[DEEPGEN_ARG_ROW_SCALES], 0x60004u);
  args.d = at(kX);
  EXPECT_EQ(check(), DEEPGEN_ERROR_OVERLAP);
}

TEST_F(RowsArguments, AnotherOperatorsArgumentsAreRefused) {
  deepgen_gemm_args gemm;
  EXPECT_EQ(deepgen_run_gemm(&function, &gemm), DEEPGEN_ERROR_ARGUMENT);
  EXPECT_EQ(deepgen_launch_gemm(&function, &gemm, nullptr), DEEPGEN_ERROR_ARGUMENT);
  function.op = DEEPGEN_OP_GEMM;
  EXPECT_EQ(deepgen_run_rows(&function, &args), DEEPGEN_ERROR_ARGUMENT);
  EXPECT_EQ(deepgen_launch_rows(&function, &args, nullptr), DEEPGEN_ERROR_ARGUMENT);
}

TEST_F(RowsArguments, TablesThatPointElsewhereAreRefused) {
  EXPECT_TRUE(deepgen::has_good_operands(function));
  const auto refused = [&](auto change) {
    SetUp();
    change(table[0]);
    return !deepgen::has_good_operands(function);
  };
  EXPECT_TRUE(refused([](deepgen_operand& x) { x.slot = DEEPGEN_ARG_COUNT; }));
  EXPECT_TRUE(refused([](deepgen_operand& x) { x.type = DEEPGEN_U8 + 1; }));
  EXPECT_TRUE(refused([](deepgen_operand& x) { x.field = sizeof(deepgen_rows_args); }));
  EXPECT_TRUE(refused([](deepgen_operand& x) { x.ld_field = 0; }));
  EXPECT_TRUE(refused([](deepgen_operand& x) { x.ld = DEEPGEN_ARG_COUNT; }));
  EXPECT_TRUE(refused([](deepgen_operand& x) { x.rows = 0; }));
  SetUp();
  table.back().flags |= DEEPGEN_OPERAND_ASCENDING;
  EXPECT_FALSE(deepgen::has_good_operands(function)) << "there is none behind the last one";
  table.resize(DEEPGEN_MOST_OPERANDS + 1, table[0]);
  function.operands = table.data(), function.operand_count = uint32_t(table.size());
  EXPECT_FALSE(deepgen::has_good_operands(function));
}

} // namespace
