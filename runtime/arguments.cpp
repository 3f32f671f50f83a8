#include "runtime/arguments.h"

#include <cstring>
#include <initializer_list>

namespace deepgen {
namespace {

/// One operand as the caller describes it, with the defaults for 0 filled in.
struct Matrix {
  int64_t rows, columns, ld, stride;
  int64_t extent = 0; ///< elements from the first to the last one of all batch entries
};

/// Fills in the defaults and the extent. Sizes are at most 2^31; the product of the rest must fit an address.
deepgen_status complete(Matrix& x, int64_t batch, uint32_t type_bytes) {
  if (x.ld == 0)
    x.ld = x.columns;
  if (x.ld < x.columns)
    return DEEPGEN_ERROR_LEADING_DIMENSION;
  if (x.stride < 0)
    return DEEPGEN_ERROR_STRIDE;
  int64_t rows = 0, entries = 0, bytes = 0;
  if (__builtin_mul_overflow(x.rows, x.ld, &rows))
    return DEEPGEN_ERROR_LEADING_DIMENSION;
  if (x.stride == 0)
    x.stride = rows;
  if (__builtin_mul_overflow(batch - 1, x.stride, &entries) ||
      __builtin_add_overflow(entries, rows, &x.extent) ||
      __builtin_mul_overflow(x.extent, int64_t(type_bytes), &bytes))
    return batch > 1 ? DEEPGEN_ERROR_STRIDE : DEEPGEN_ERROR_LEADING_DIMENSION;
  x.extent -= x.ld - x.columns;
  return DEEPGEN_OK;
}

/// Batch entries may follow each other, or lie side by side within the leading dimension ([M, batch, N] in
/// memory).
bool entries_disjoint(const Matrix& d, int64_t batch) {
  if (batch == 1 || d.stride >= (d.rows - 1) * d.ld + d.columns)
    return true;
  return d.stride >= d.columns && (batch - 1) * d.stride + d.columns <= d.ld;
}

/// C and D share an element without being the same matrix.
bool overlap(const Matrix& c, const void* c_data, const Matrix& d, const void* d_data, int64_t batch,
             uint32_t type_bytes) {
  const uintptr_t c0 = uintptr_t(c_data), d0 = uintptr_t(d_data);
  if (c0 == d0)
    return (c.ld != d.ld && d.rows > 1) || (c.stride != d.stride && batch > 1);
  const uintptr_t low = c0 < d0 ? c0 : d0, high = c0 < d0 ? d0 : c0;
  const uintptr_t extent = uintptr_t(c0 < d0 ? c.extent : d.extent) * type_bytes;
  if (high - low >= extent)
    return false;
  // Two column ranges of one wider matrix interleave without sharing an element.
  if (batch > 1 || c.ld != d.ld)
    return true;
  const uintptr_t row = uintptr_t(d.ld) * type_bytes, width = uintptr_t(d.columns) * type_bytes;
  const uintptr_t shift = (high - low) % row;
  return shift < width || row - shift < width;
}

uint64_t scalar_bits(double value, uint32_t type_bytes) {
  uint64_t bits = 0;
  if (type_bytes == 4) {
    const float narrow = float(value);
    std::memcpy(&bits, &narrow, 4);
  } else {
    std::memcpy(&bits, &value, 8);
  }
  return bits;
}

uint32_t type_bytes(const deepgen_function& f) { return f.d_type == DEEPGEN_F64 ? 8 : 4; }

deepgen_status check_pointers(const deepgen_function& f, const deepgen_gemm_args& args) {
  const bool reads_c = args.beta != 0; // true for NaN too
  const bool has_bias = f.epilogue & (1u << DEEPGEN_EPILOGUE_BIAS);
  if (!args.a || !args.b || !args.d || (has_bias && !args.bias) || (reads_c && !args.c))
    return DEEPGEN_ERROR_NULL;
  uintptr_t bits = uintptr_t(args.a) | uintptr_t(args.b) | uintptr_t(args.d);
  if (has_bias)
    bits |= uintptr_t(args.bias);
  if (reads_c)
    bits |= uintptr_t(args.c);
  return bits & (type_bytes(f) - 1) ? DEEPGEN_ERROR_ALIGNMENT : DEEPGEN_OK;
}

} // namespace

deepgen_status check_arguments(const deepgen_function& f, const deepgen_gemm_args& args,
                               ArgumentValues& values) {
  if (deepgen_status status = check_pointers(f, args))
    return status;
  Matrix a{f.a_rows, f.a_columns, args.lda, args.stride_a};
  Matrix b{f.b_rows, f.b_columns, args.ldb, args.stride_b};
  Matrix c{f.m, f.n, args.ldc, args.stride_c};
  Matrix d{f.m, f.n, args.ldd, args.stride_d};
  for (Matrix* x : {&a, &b, &d})
    if (deepgen_status status = complete(*x, f.batch, type_bytes(f)))
      return status;
  if (!entries_disjoint(d, f.batch))
    return DEEPGEN_ERROR_STRIDE;
  if (args.beta != 0) {
    if (deepgen_status status = complete(c, f.batch, type_bytes(f)))
      return status;
    if (overlap(c, args.c, d, args.d, f.batch, type_bytes(f)))
      return DEEPGEN_ERROR_OVERLAP;
  }
  uint64_t* slot = values.slot;
  slot[DEEPGEN_ARG_A] = uintptr_t(args.a);
  slot[DEEPGEN_ARG_B] = uintptr_t(args.b);
  slot[DEEPGEN_ARG_C] = uintptr_t(args.c);
  slot[DEEPGEN_ARG_D] = uintptr_t(args.d);
  slot[DEEPGEN_ARG_BIAS] = uintptr_t(args.bias);
  slot[DEEPGEN_ARG_LDA] = uint64_t(a.ld), slot[DEEPGEN_ARG_STRIDE_A] = uint64_t(a.stride);
  slot[DEEPGEN_ARG_LDB] = uint64_t(b.ld), slot[DEEPGEN_ARG_STRIDE_B] = uint64_t(b.stride);
  slot[DEEPGEN_ARG_LDC] = uint64_t(c.ld), slot[DEEPGEN_ARG_STRIDE_C] = uint64_t(c.stride);
  slot[DEEPGEN_ARG_LDD] = uint64_t(d.ld), slot[DEEPGEN_ARG_STRIDE_D] = uint64_t(d.stride);
  slot[DEEPGEN_ARG_ALPHA] = scalar_bits(args.alpha, type_bytes(f));
  slot[DEEPGEN_ARG_BETA] = scalar_bits(args.beta, type_bytes(f));
  return DEEPGEN_OK;
}

} // namespace deepgen
