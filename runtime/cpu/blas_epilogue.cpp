#include "runtime/cpu/blas_epilogue.h"

#include "runtime/cpu/cpu.h"

#include <cstring>

namespace deepgen::blas {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

constexpr int64_t kPiece =
    1024; ///< columns that all steps have one after the other: they stay in the L1 cache

enum class Shape { matrix, per_row, per_column, value };
struct StepRow {
  const char* operand;
  Shape shape;
};
constexpr StepRow kSteps[] = {
#define DEEPGEN_STEP(name, operand, shape, ...) {operand, Shape::shape},
    DEEPGEN_EPILOGUE_STEPS(DEEPGEN_STEP)
#undef DEEPGEN_STEP
};

uint8_t slot_named(const char* name) {
  static constexpr const char* names[DEEPGEN_ARG_COUNT] = {DEEPGEN_ARG_NAMES};
  uint8_t slot = 0;
  while (slot < DEEPGEN_ARG_COUNT && std::strcmp(names[slot], name) != 0) ++slot;
  return slot;
}

/// The leading dimension's slot stands behind the matrix's, and the batch stride's behind that.
static_assert(DEEPGEN_ARG_LD_RESIDUAL == DEEPGEN_ARG_RESIDUAL + 1 &&
              DEEPGEN_ARG_STRIDE_RESIDUAL == DEEPGEN_ARG_RESIDUAL + 2 &&
              DEEPGEN_ARG_LD_MULTIPLIER == DEEPGEN_ARG_MULTIPLIER + 1 &&
              DEEPGEN_ARG_STRIDE_MULTIPLIER == DEEPGEN_ARG_MULTIPLIER + 2);

// One object file serves every x86-64. Not by target_clones, which needs a loader that knows indirect
// functions.
#if defined(__x86_64__)
#define DEEPGEN_LEVEL(name, features)                                                                        \
  template <typename T>                                                                                      \
  __attribute__((target(features))) void name(RowStep step, T* row, int64_t n, const T* y, T low, T high) {  \
    apply_row(step, row, n, y, low, high);                                                                   \
  }
DEEPGEN_LEVEL(apply_level_3, "avx2,fma")
DEEPGEN_LEVEL(apply_level_4, "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")
#undef DEEPGEN_LEVEL
#endif

template <typename T>
void apply_level_1(RowStep step, T* row, int64_t n, const T* y, T low, T high) {
  apply_row(step, row, n, y, low, high);
}

template <typename T>
using Apply = void (*)(RowStep, T*, int64_t, const T*, T, T);

template <typename T>
Apply<T> apply_here() {
#if defined(__x86_64__)
  const uint32_t level = deepgen_cpu_level();
  if (level >= 4) return apply_level_4<T>;
  if (level >= 3) return apply_level_3<T>;
#endif
  return apply_level_1<T>;
}

template <typename T>
T scalar(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

} // namespace

StepOperand operand_of(RowStep step, const ArgumentValues& values) {
  const StepRow& row = kSteps[int(step)];
  if (!*row.operand) return {nullptr, 0, 0, 0};
  const uint8_t slot = slot_named(row.operand);
  StepOperand x{reinterpret_cast<const void*>(values.slot[slot]), 0, row.shape == Shape::per_row,
                row.shape == Shape::per_column};
  if (row.shape == Shape::matrix)
    x.row = int64_t(values.slot[slot + 1]), x.entry = int64_t(values.slot[slot + 2]), x.column = 1;
  return x;
}

template <typename T>
void run_steps(const deepgen_vendor_call& call, const ArgumentValues& values, const Block& b, T* d,
               int64_t ldd) {
  if (!call.step_count) return;
  const Apply<T> apply = apply_here<T>();
  const T low = scalar<T>(values.slot[DEEPGEN_ARG_CLAMP_LOW]),
          high = scalar<T>(values.slot[DEEPGEN_ARG_CLAMP_HIGH]);
  constexpr int most = sizeof kSteps / sizeof *kSteps;
  StepOperand operands[most];
  for (uint32_t i = 0; i < call.step_count; ++i) operands[i] = operand_of(RowStep(call.steps[i]), values);
  for (int64_t r = b.m0; r < b.m1; ++r)
    for (int64_t begin = b.n0; begin < b.n1; begin += kPiece) {
      const int64_t count = b.n1 - begin < kPiece ? b.n1 - begin : kPiece;
      for (uint32_t i = 0; i < call.step_count; ++i) {
        const StepOperand& x = operands[i];
        const T* y = static_cast<const T*>(x.data);
        if (y) y += b.entry * x.entry + r * x.row + begin * x.column;
        apply(RowStep(call.steps[i]), d + r * ldd + begin, count, y, low, high);
      }
    }
}

template void run_steps(const deepgen_vendor_call&, const ArgumentValues&, const Block&, float*, int64_t);
template void run_steps(const deepgen_vendor_call&, const ArgumentValues&, const Block&, double*, int64_t);

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::blas
