#include "runtime/arguments.h"

#include <cstring>
#include <initializer_list>

namespace deepgen::inline DEEPGEN_ABI_NAMESPACE {
namespace {

/// One operand as the caller describes it, with the defaults for 0 filled in.
struct Matrix {
  const void* data;
  int64_t rows, columns, ld, stride;
  uint32_t size;      ///< bytes of an element
  int64_t extent = 0; ///< bytes from the first element to the end of the last one of all batch entries
};

/// Fills in the defaults and the extent. Sizes are at most 2^31; the product of the rest must fit an address.
deepgen_status complete(Matrix& x, int64_t batch, bool broadcasts) {
  if (x.ld == 0) x.ld = x.columns;
  if (x.ld < x.columns) return DEEPGEN_ERROR_LEADING_DIMENSION;
  if (x.stride < (broadcasts ? DEEPGEN_BROADCAST : 0)) return DEEPGEN_ERROR_STRIDE;
  int64_t rows = 0, elements = 0;
  if (__builtin_mul_overflow(x.rows, x.ld, &rows)) return DEEPGEN_ERROR_LEADING_DIMENSION;
  x.stride = x.stride == 0 ? rows : x.stride == DEEPGEN_BROADCAST ? 0 : x.stride;
  if (__builtin_mul_overflow(batch - 1, x.stride, &elements) ||
      __builtin_add_overflow(elements, rows, &elements) ||
      __builtin_mul_overflow(elements, int64_t(x.size), &x.extent))
    return batch > 1 ? DEEPGEN_ERROR_STRIDE : DEEPGEN_ERROR_LEADING_DIMENSION;
  x.extent -= (x.ld - x.columns) * x.size;
  return DEEPGEN_OK;
}

/// Batch entries may follow each other, or lie side by side within the leading dimension ([M, batch, N] in
/// memory).
bool entries_disjoint(const Matrix& d, int64_t batch) {
  if (batch == 1 || d.stride >= (d.rows - 1) * d.ld + d.columns) return true;
  return d.stride >= d.columns && (batch - 1) * d.stride + d.columns <= d.ld;
}

/// x, which is read element by element before D is written, and D share memory without being the same matrix.
bool overlap(const Matrix& x, const Matrix& d, int64_t batch) {
  const uintptr_t x0 = uintptr_t(x.data), d0 = uintptr_t(d.data);
  if (x0 == d0)
    return x.size != d.size || (x.ld != d.ld && d.rows > 1) || (x.stride != d.stride && batch > 1);
  const uintptr_t distance = x0 < d0 ? d0 - x0 : x0 - d0;
  if (distance >= uintptr_t(x0 < d0 ? x.extent : d.extent)) return false;
  // Two column ranges of one wider matrix interleave without sharing an element.
  if (batch > 1 || x.size != d.size || x.ld != d.ld) return true;
  const uintptr_t row = uintptr_t(d.ld) * d.size, width = uintptr_t(d.columns) * d.size;
  const uintptr_t shift = distance % row;
  return shift < width || row - shift < width;
}

/// The value in the low bytes; false when it is no value of an i32 scalar.
bool to_bits(double value, uint8_t type, uint64_t& bits) {
  bits = 0;
  if (type == DEEPGEN_F64) {
    std::memcpy(&bits, &value, 8);
  } else if (type == DEEPGEN_I32) {
    if (!(value >= INT32_MIN && value <= INT32_MAX) || value != double(int32_t(value))) return false;
    bits = uint32_t(int32_t(value));
  } else {
    const float narrow = float(value);
    std::memcpy(&bits, &narrow, 4);
  }
  return true;
}

constexpr uint32_t bit(deepgen_epilogue step) { return 1u << step; }

/// A step that reads a vector or one value.
struct VectorStep {
  deepgen_epilogue step;
  const void* deepgen_gemm_args::* pointer;
  deepgen_arg slot;
  bool is_scale; ///< of scale_type, else of epilogue_type
};
constexpr VectorStep vector_steps[] = {
    {DEEPGEN_EPILOGUE_BIAS, &deepgen_gemm_args::bias, DEEPGEN_ARG_BIAS, false},
    {DEEPGEN_EPILOGUE_BIAS_ROW, &deepgen_gemm_args::bias_row, DEEPGEN_ARG_BIAS_ROW, false},
    {DEEPGEN_EPILOGUE_SCALE_A, &deepgen_gemm_args::scale_a, DEEPGEN_ARG_SCALE_A, true},
    {DEEPGEN_EPILOGUE_SCALE_B, &deepgen_gemm_args::scale_b, DEEPGEN_ARG_SCALE_B, true},
    {DEEPGEN_EPILOGUE_SCALE_ROW, &deepgen_gemm_args::scale_row, DEEPGEN_ARG_SCALE_ROW, true},
    {DEEPGEN_EPILOGUE_SCALE_COL, &deepgen_gemm_args::scale_col, DEEPGEN_ARG_SCALE_COL, true},
    {DEEPGEN_EPILOGUE_SCALE_D, &deepgen_gemm_args::scale_d, DEEPGEN_ARG_SCALE_D, true},
};

/// A step that reads a matrix of D's shape; its leading dimension and stride have the next two slots.
struct MatrixStep {
  deepgen_epilogue step;
  const void* deepgen_gemm_args::* pointer;
  int64_t deepgen_gemm_args::* ld;
  int64_t deepgen_gemm_args::* stride;
  deepgen_arg slot;
};
constexpr MatrixStep matrix_steps[] = {
    {DEEPGEN_EPILOGUE_RESIDUAL, &deepgen_gemm_args::residual, &deepgen_gemm_args::ld_residual,
     &deepgen_gemm_args::stride_residual, DEEPGEN_ARG_RESIDUAL},
    {DEEPGEN_EPILOGUE_MULTIPLY, &deepgen_gemm_args::multiplier, &deepgen_gemm_args::ld_multiplier,
     &deepgen_gemm_args::stride_multiplier, DEEPGEN_ARG_MULTIPLIER},
};
static_assert(DEEPGEN_ARG_LD_RESIDUAL == DEEPGEN_ARG_RESIDUAL + 1 &&
              DEEPGEN_ARG_STRIDE_RESIDUAL == DEEPGEN_ARG_RESIDUAL + 2);
static_assert(DEEPGEN_ARG_LD_MULTIPLIER == DEEPGEN_ARG_MULTIPLIER + 1 &&
              DEEPGEN_ARG_STRIDE_MULTIPLIER == DEEPGEN_ARG_MULTIPLIER + 2);

constexpr uint32_t steps_with_operands() {
  uint32_t set = bit(DEEPGEN_EPILOGUE_CLAMP);
  for (const VectorStep& v : vector_steps) set |= bit(v.step);
  for (const MatrixStep& m : matrix_steps) set |= bit(m.step);
  return set;
}

deepgen_status check_pointer(const void* pointer, uint32_t size) {
  if (!pointer) return DEEPGEN_ERROR_NULL;
  return uintptr_t(pointer) & (size - 1) ? DEEPGEN_ERROR_ALIGNMENT : DEEPGEN_OK;
}

deepgen_status check_vectors(const deepgen_function& f, const deepgen_gemm_args& args, uint64_t* slot) {
  const uint32_t scale = size_of(f.scale_type), other = size_of(f.epilogue_type);
  for (const VectorStep& v : vector_steps)
    if (f.epilogue & bit(v.step)) {
      if (deepgen_status status = check_pointer(args.*v.pointer, v.is_scale ? scale : other)) return status;
      slot[v.slot] = uintptr_t(args.*v.pointer);
    }
  if (!(f.epilogue & bit(DEEPGEN_EPILOGUE_CLAMP))) return DEEPGEN_OK;
  // Not "low > high", which lets NaN pass.
  return args.clamp_low <= args.clamp_high &&
                 to_bits(args.clamp_low, f.scale_type, slot[DEEPGEN_ARG_CLAMP_LOW]) &&
                 to_bits(args.clamp_high, f.scale_type, slot[DEEPGEN_ARG_CLAMP_HIGH])
             ? DEEPGEN_OK
             : DEEPGEN_ERROR_ARGUMENT;
}

deepgen_status check_matrices(const deepgen_function& f, const deepgen_gemm_args& args, const Matrix& d,
                              uint64_t* slot) {
  for (const MatrixStep& m : matrix_steps)
    if (f.epilogue & bit(m.step)) {
      Matrix x{args.*m.pointer, f.m, f.n, args.*m.ld, args.*m.stride, size_of(f.epilogue_type)};
      if (deepgen_status status = check_pointer(x.data, x.size)) return status;
      if (deepgen_status status = complete(x, f.batch, true)) return status;
      if (overlap(x, d, f.batch)) return DEEPGEN_ERROR_OVERLAP;
      slot[m.slot] = uintptr_t(x.data);
      slot[m.slot + 1] = uint64_t(x.ld), slot[m.slot + 2] = uint64_t(x.stride);
    }
  return DEEPGEN_OK;
}

} // namespace

bool has_known_types(const deepgen_function& f) {
  for (uint8_t type : {f.a_type, f.b_type, f.d_type, f.epilogue_type, f.scale_type})
    if (type > DEEPGEN_I32) return false;
  return f.m >= 1 && f.n >= 1 && f.k >= 1 && f.batch >= 1 && f.groups >= 0;
}

deepgen_status check_arguments(const deepgen_function& f, const deepgen_gemm_args& args,
                               ArgumentValues& values) {
  Matrix a{args.a, f.a_rows, f.a_columns, args.lda, args.stride_a, size_of(f.a_type)};
  Matrix b{args.b, f.b_rows, f.b_columns, args.ldb, args.stride_b, size_of(f.b_type)};
  Matrix c{args.c, f.m, f.n, args.ldc, args.stride_c, size_of(f.d_type)};
  Matrix d{args.d, f.m, f.n, args.ldd, args.stride_d, size_of(f.d_type)};
  for (const Matrix* x : {&a, &b, &d})
    if (deepgen_status status = check_pointer(x->data, x->size)) return status;
  for (Matrix* x : {&a, &b, &d})
    if (deepgen_status status = complete(*x, x == &b && f.groups ? f.groups : f.batch, x != &d))
      return status;
  if (f.groups)
    if (deepgen_status status = check_pointer(args.offsets, sizeof *args.offsets)) return status;
  if (!entries_disjoint(d, f.batch)) return DEEPGEN_ERROR_STRIDE;
  if (reads_c(args)) {
    if (deepgen_status status = check_pointer(c.data, c.size)) return status;
    if (deepgen_status status = complete(c, f.batch, true)) return status;
    if (overlap(c, d, f.batch)) return DEEPGEN_ERROR_OVERLAP;
  }
  uint64_t* slot = values.slot;
  std::memset(slot, 0, sizeof values.slot);
  slot[DEEPGEN_ARG_A] = uintptr_t(a.data);
  slot[DEEPGEN_ARG_B] = uintptr_t(b.data);
  slot[DEEPGEN_ARG_C] = uintptr_t(c.data);
  slot[DEEPGEN_ARG_D] = uintptr_t(d.data);
  slot[DEEPGEN_ARG_LDA] = uint64_t(a.ld), slot[DEEPGEN_ARG_STRIDE_A] = uint64_t(a.stride);
  slot[DEEPGEN_ARG_LDB] = uint64_t(b.ld), slot[DEEPGEN_ARG_STRIDE_B] = uint64_t(b.stride);
  slot[DEEPGEN_ARG_LDC] = uint64_t(c.ld), slot[DEEPGEN_ARG_STRIDE_C] = uint64_t(c.stride);
  slot[DEEPGEN_ARG_LDD] = uint64_t(d.ld), slot[DEEPGEN_ARG_STRIDE_D] = uint64_t(d.stride);
  slot[DEEPGEN_ARG_OFFSETS] = f.groups ? uintptr_t(args.offsets) : 0;
  if (!to_bits(args.alpha, f.scale_type, slot[DEEPGEN_ARG_ALPHA]) ||
      !to_bits(args.beta, f.scale_type, slot[DEEPGEN_ARG_BETA]))
    return DEEPGEN_ERROR_ARGUMENT;
  if (!(f.epilogue & steps_with_operands())) return DEEPGEN_OK;
  if (deepgen_status status = check_vectors(f, args, slot)) return status;
  return check_matrices(f, args, d, slot);
}

} // namespace deepgen::inline DEEPGEN_ABI_NAMESPACE
