// The steps of an epilogue, as the tools have them: the table is runtime/include/deepgen/epilogue_steps.h.
#pragma once

#include "runtime/include/deepgen/epilogue_steps.h"

namespace deepgen {

enum class EpilogueOp {
#define DEEPGEN_STEP(name, ...) name,
  DEEPGEN_EPILOGUE_STEPS(DEEPGEN_STEP)
#undef DEEPGEN_STEP
};

/// Where an operand has values: for each element of D, each row, each column, or one for all.
enum class StepShape { matrix, per_row, per_column, value };

struct EpilogueStep {
  const char* name;    ///< in keys
  const char* operand; ///< in memory: its slot (kernel_abi.h) and field; "": none
  StepShape shape;
  bool scale; ///< of Gemm::scale_type(), else of epilogue_type(); one value a column: each group has its own
  const char* function; ///< its definition, for people; "": its formula says all
};

/// By EpilogueOp. The bounds of clamp are passed by value: signature() has them.
inline constexpr EpilogueStep epilogue_steps[] = {
#define DEEPGEN_STEP(name, operand, shape, scale, function)                                                  \
  {#name, operand, StepShape::shape, scale, function},
    DEEPGEN_EPILOGUE_STEPS(DEEPGEN_STEP)
#undef DEEPGEN_STEP
};
inline constexpr int epilogue_op_count = sizeof epilogue_steps / sizeof *epilogue_steps;

} // namespace deepgen
