// The steps of an epilogue: one table of what each is called and what operand it has. What they compute
// stands in templates/ir/epilogue.cpp and in those that check it.
#pragma once

namespace deepgen {

/// x is the value of D[m,n] so far. Their numbers stay: new ones go to the end, and into the table.
enum class EpilogueOp {
  bias,      ///< x + bias[n]
  bias_row,  ///< x + bias_row[m]
  relu,      ///< max(x, 0); NaN stays NaN
  gelu,      ///< x/2 (1 + erf(x / sqrt 2))
  gelu_tanh, ///< x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
  silu,      ///< x / (1 + exp(-x))
  sigmoid,   ///< 1 / (1 + exp(-x))
  clamp,     ///< min(max(x, clamp_low), clamp_high); NaN stays NaN
  residual,  ///< x + residual[m,n]
  multiply,  ///< x * multiplier[m,n]
  scale_a,   ///< x * scale_a[0]: of A as a whole, such as an fp8 or int8 tensor's
  scale_b,   ///< x * scale_b[0]
  scale_row, ///< x * scale_row[m]
  scale_col, ///< x * scale_col[n]
  scale_d    ///< x * scale_d[0], such as the quantisation of an int8 output
};

/// Where an operand has values: for each element of D, each row, each column, or one for all.
enum class StepShape { matrix, per_row, per_column, value };

struct EpilogueStep {
  const char* name;              ///< in keys
  const char* operand = nullptr; ///< in memory: its slot (kernel_abi.h) and field; null: none
  StepShape shape = StepShape::value;
  bool scale =
      false; ///< of Gemm::scale_type(), else of epilogue_type(); one value a column: each group has its own
};

/// By EpilogueOp. The bounds of clamp are passed by value: signature() has them.
inline constexpr EpilogueStep epilogue_steps[] = {{"bias", "bias", StepShape::per_column},
                                                  {"bias_row", "bias_row", StepShape::per_row},
                                                  {"relu"},
                                                  {"gelu"},
                                                  {"gelu_tanh"},
                                                  {"silu"},
                                                  {"sigmoid"},
                                                  {"clamp"},
                                                  {"residual", "residual", StepShape::matrix},
                                                  {"multiply", "multiplier", StepShape::matrix},
                                                  {"scale_a", "scale_a", StepShape::value, true},
                                                  {"scale_b", "scale_b", StepShape::value, true},
                                                  {"scale_row", "scale_row", StepShape::per_row, true},
                                                  {"scale_col", "scale_col", StepShape::per_column, true},
                                                  {"scale_d", "scale_d", StepShape::value, true}};
inline constexpr int epilogue_op_count = sizeof epilogue_steps / sizeof *epilogue_steps;

} // namespace deepgen
