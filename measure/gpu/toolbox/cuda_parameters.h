// What the host passes to the kernels of cuda_kernels.cu. Both compilers read this; only fixed-size types.
#pragma once

#include "base/problem/epilogue_op.h"

#include <stdint.h>

namespace deepgen::cuda {

/// Every byte that no element owns holds this, and outputs before a call: a NaN in every floating-point type,
/// and not one that arithmetic yields (those are positive).
constexpr uint32_t canary_byte = 0xff, canary_word = 0xffffffffu;

/// A row-major operand in device memory; sizes and steps in elements. A broadcast operand has batch 1 and
/// stride 0.
struct Array {
  uint64_t data = 0; ///< 0: absent
  int64_t rows = 1, columns = 1, ld = 1, batch = 1, stride = 0;
  int32_t type = 0, padding = 0; ///< deepgen::Type
};

/// Values by a hash of seed and place: centre + amplitude * U[-1, 1), rounded to the type; integers: the same
/// in steps of 1, and i8 operands of a product the whole range.
struct Values {
  uint64_t seed = 0;
  double centre = 0, amplitude = 1;
};

/// The product in f64, and the product of the 2-norms of its row and column, of blocks of 32 rows of D.
constexpr int32_t block_rows = 32;
struct ProductParameters {
  uint64_t a = 0, b = 0;
  int64_t a_row = 0, a_k = 0, a_entry = 0; ///< steps in elements
  int64_t b_k = 0, b_column = 0, b_entry = 0;
  int64_t m = 1, n = 1, k = 1;
  int32_t a_type = 0, b_type = 0;
  uint64_t blocks = 0;                 ///< int64_t[]: batch entry * blocks per entry + block in it
  uint64_t product = 0, magnitude = 0; ///< double[], float[]: [block][32][n]
};

/// Gate, epilogue and the operands of its steps. Those have a place for every element of D: a value for each
/// column is a matrix with a step of 0 from row to row, one for each row has one column.
constexpr int32_t most_steps = epilogue_op_count;
struct EpilogueParameters {
  double alpha = 1, beta = 0;
  double clamp_low = 0, clamp_high = 0;
  Array c, operands[most_steps];  ///< of each step
  int32_t steps[most_steps] = {}; ///< deepgen::EpilogueOp
  int32_t step_count = 0;
  int32_t gate = -1; ///< deepgen::EpilogueOp; -1: none. Else the product has twice as many columns as D
};

/// How far from the reference an element may be; see cuda_tolerance.h.
struct Tolerance {
  double sum = 0;      ///< times magnitude: of the product
  double epilogue = 0; ///< unit roundoff of the type in which the epilogue computes
  double output = 0;   ///< unit roundoff of D's type
  double smallest = 0; ///< absolute, for results near zero
  double largest = 0;  ///< finite value of D's type; beyond it infinity is right
};

struct CompareParameters {
  Array d;
  int64_t block_count = 0, place = -1; ///< place >= 0: only describe that element
  uint64_t blocks = 0, product = 0, magnitude = 0;
  EpilogueParameters epilogue;
  Tolerance tolerance;
  uint64_t result = 0;
};

/// What a comparison or a check found; starts as {0, 0, no_place, 0, 0, 0}.
constexpr uint64_t no_place = ~uint64_t(0);
struct Finding {
  uint32_t worst = 0, padding = 0;      ///< bits of a float: the largest error over its tolerance
  uint64_t count = 0, place = no_place; ///< bad elements (or bytes), and the first of them
  double found = 0, expected = 0, tolerance = 0;
};

/// What `spin` saw on one multiprocessor.
struct ClockReading {
  uint64_t cycles = 0, nanoseconds = 0;
};

} // namespace deepgen::cuda
