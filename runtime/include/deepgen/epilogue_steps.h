/* The steps that an epilogue may have, in one table: the tools, the runtime and CMake read it. What they
   compute stands in templates/ir/epilogue.cpp and in those that check it. */
#ifndef DEEPGEN_EPILOGUE_STEPS_H
#define DEEPGEN_EPILOGUE_STEPS_H

/* X(name, operand, shape, scale, function). x is the value of D[m,n] so far.
   name: in keys, and the step's number: new ones go to the end.
   operand: its slot (kernel_abi.h) and field, "" when it has none in memory. The bounds of clamp are passed
   by value. shape: where that has values: for each element of D, each row, each column, or one for all.
   scale: whether it is of the type of alpha, else of D's type where that is a float; see
   Gemm::epilogue_type(). One value a column: each group has its own. function: what generated headers
   explain. CMake finds the names at the beginnings of lines. */
/* clang-format off */
#define DEEPGEN_EPILOGUE_STEPS(X) \
  X(bias, "bias", per_column, false, "") /* x + bias[n] */ \
  X(bias_row, "bias_row", per_row, false, "") /* x + bias_row[m] */ \
  X(relu, "", value, false, "") /* max(x, 0); NaN stays NaN */ \
  X(gelu, "", value, false, "gelu(x) = x/2 * (1 + erf(x / sqrt 2))") \
  X(gelu_tanh, "", value, false, "gelu_tanh(x) = x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3)))") \
  X(silu, "", value, false, "silu(x) = x / (1 + exp(-x))") \
  X(sigmoid, "", value, false, "sigmoid(x) = 1 / (1 + exp(-x))") \
  X(clamp, "", value, false, "clamp(x) = min(max(x, clamp_low), clamp_high)") /* NaN stays NaN */ \
  X(residual, "residual", matrix, false, "") /* x + residual[m,n] */ \
  X(multiply, "multiplier", matrix, false, "") /* x * multiplier[m,n] */ \
  X(scale_a, "scale_a", value, true, "") /* x * scale_a[0]: of A as a whole, such as an fp8 or int8 tensor's */ \
  X(scale_b, "scale_b", value, true, "") /* x * scale_b[0] */ \
  X(scale_row, "scale_row", per_row, true, "") /* x * scale_row[m] */ \
  X(scale_col, "scale_col", per_column, true, "") /* x * scale_col[n] */ \
  X(scale_d, "scale_d", value, true, "") /* x * scale_d[0], such as the quantisation of an int8 output */ \
  X(prelu, "slope", per_column, false, "prelu(x, slope) = x > 0 ? x : slope * x") /* slope[n] */
/* clang-format on */

#endif
