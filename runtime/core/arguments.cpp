#include "runtime/core/arguments.h"

#include "deepgen/packed_layout.h"

#include <cstring>
#include <initializer_list>

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

/// One matrix as the caller describes it, with the defaults for 0 filled in.
struct Matrix {
  uintptr_t data;
  int64_t rows, columns, entries, ld, stride;
  uint32_t size;  ///< bytes of an element
  uint32_t flags; ///< of the operand
  int64_t extent; ///< bytes from the first element to the end of the last one of all batch entries
};

/// Those of which each is compared with each other: what is written, and what that may be.
constexpr uint32_t most_compared = 8;
constexpr uint32_t compared = DEEPGEN_OPERAND_OUT | DEEPGEN_OPERAND_IN_PLACE;

template <typename T>
T field(const CallArguments& args, uint32_t offset) {
  T x;
  std::memcpy(&x, static_cast<const char*>(args.fields) + offset, sizeof x);
  return x;
}

/// Fills in the defaults and the extent. Sizes are at most 2^31; the product of the rest must fit an address.
deepgen_status complete(Matrix& x) {
  if (x.ld == 0) x.ld = x.columns;
  if (x.ld < x.columns) return DEEPGEN_ERROR_LEADING_DIMENSION;
  if (x.stride < (x.flags & DEEPGEN_OPERAND_OUT ? 0 : DEEPGEN_BROADCAST)) return DEEPGEN_ERROR_STRIDE;
  int64_t rows = 0, elements = 0;
  if (__builtin_mul_overflow(x.rows, x.ld, &rows)) return DEEPGEN_ERROR_LEADING_DIMENSION;
  x.stride = x.stride == 0 ? rows : x.stride == DEEPGEN_BROADCAST ? 0 : x.stride;
  if (__builtin_mul_overflow(x.entries - 1, x.stride, &elements) ||
      __builtin_add_overflow(elements, rows, &elements) ||
      __builtin_mul_overflow(elements, int64_t(x.size), &x.extent))
    return x.entries > 1 ? DEEPGEN_ERROR_STRIDE : DEEPGEN_ERROR_LEADING_DIMENSION;
  x.extent -= (x.ld - x.columns) * x.size;
  return DEEPGEN_OK;
}

/// Batch entries may follow each other, or lie side by side within the leading dimension ([M, batch, N] in
/// memory).
bool entries_disjoint(const Matrix& d) {
  if (d.entries == 1 || d.stride >= (d.rows - 1) * d.ld + d.columns) return true;
  return d.stride >= d.columns && (d.entries - 1) * d.stride + d.columns <= d.ld;
}

/// x, which is read element by element before D is written, and D share memory without being the same matrix.
bool overlap(const Matrix& x, const Matrix& d) {
  if (x.data == d.data)
    return x.flags & DEEPGEN_OPERAND_OUT || x.size != d.size || (x.ld != d.ld && d.rows > 1) ||
           (x.stride != d.stride && d.entries > 1);
  const uintptr_t distance = x.data < d.data ? d.data - x.data : x.data - d.data;
  if (distance >= uintptr_t(x.data < d.data ? x.extent : d.extent)) return false;
  // Two column ranges of one wider matrix interleave without sharing an element.
  if (d.entries > 1 || x.size != d.size || x.ld != d.ld) return true;
  const uintptr_t row = uintptr_t(d.ld) * d.size, width = uintptr_t(d.columns) * d.size;
  const uintptr_t shift = distance % row;
  return shift < width || row - shift < width;
}

deepgen_status check_overlaps(const Matrix* matrices, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i)
    for (uint32_t j = 0; j < count; ++j) {
      const bool once = j < i || !(matrices[j].flags & DEEPGEN_OPERAND_OUT); // two that are written: one pair
      if (matrices[i].flags & DEEPGEN_OPERAND_OUT && i != j && once && overlap(matrices[j], matrices[i]))
        return DEEPGEN_ERROR_OVERLAP;
    }
  return DEEPGEN_OK;
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

/// `sums`: whether there are products. Without any, alpha has nothing to scale: infinity times none is none.
deepgen_status check_scalar(const deepgen_operand& x, const CallArguments& args, bool sums, uint64_t* slot) {
  const double value = x.slot == DEEPGEN_ARG_ALPHA && !sums ? 1 : field<double>(args, x.field);
  // Not "low > high", which lets NaN pass.
  if (x.flags & DEEPGEN_OPERAND_ASCENDING && !(value <= field<double>(args, (&x)[1].field)))
    return DEEPGEN_ERROR_ARGUMENT;
  if (x.flags & DEEPGEN_OPERAND_NOT_NEGATIVE && !(value >= 0 && value <= __DBL_MAX__))
    return DEEPGEN_ERROR_ARGUMENT;
  return to_bits(value, x.type, slot[x.slot]) ? DEEPGEN_OK : DEEPGEN_ERROR_ARGUMENT;
}

bool is_empty(const Matrix& m) { return !m.rows || !m.columns || !m.entries; }

/// Its data, and rows, columns and entries in this call.
Matrix shape_of(const deepgen_operand& x, uintptr_t data, const int64_t* sizes) {
  const uint8_t by = x.rows_by | x.columns_by | x.entries_by; // most have no size that varies
  return {data,
          by ? scaled(x.rows, x.rows_by, sizes) : x.rows,
          by ? scaled(x.columns, x.columns_by, sizes) : x.columns,
          by ? scaled(x.entries, x.entries_by, sizes) : x.entries,
          0,
          0,
          size_of(x.type),
          x.flags,
          0};
}

deepgen_status check_matrix(const deepgen_operand& x, const CallArguments& args, uint64_t* slot, Matrix& m) {
  m.ld = field<int64_t>(args, x.ld_field);
  if (x.stride_field) m.stride = field<int64_t>(args, x.stride_field);
  if (deepgen_status status = complete(m)) return status;
  if (x.flags & DEEPGEN_OPERAND_OUT && !is_empty(m) && !entries_disjoint(m)) return DEEPGEN_ERROR_STRIDE;
  slot[x.ld] = uint64_t(m.ld);
  if (x.stride != DEEPGEN_ARG_COUNT) slot[x.stride] = uint64_t(m.stride);
  return DEEPGEN_OK;
}

/// Of one size, what the call has of it; false: none of the function's.
bool take_size(const deepgen_range& range, int64_t passed, int64_t& size) {
  size = passed;
  if (is_ranged(range)) return !passed || (passed >= range.least && passed <= range.most);
  size = range.most;
  return passed == DEEPGEN_AS_BUILT || passed == range.most;
}

/// The first `count` slots. In pieces, each of a few stores: of the whole, GCC makes one instruction that
/// takes long to start.
template <uint32_t count>
void clear(uint64_t* slot) {
  constexpr uint32_t piece = 8;
  uint32_t i = 0;
  for (; i + piece <= count; i += piece) std::memset(slot + i, 0, piece * sizeof *slot);
  for (; i < count; ++i) slot[i] = 0;
}

/// Offsets lie within the struct of arguments, and slots in the table of them.
bool is_good(const deepgen_operand& x, uint32_t bytes) {
  const bool matrix = x.flags & DEEPGEN_OPERAND_MATRIX;
  for (uint32_t offset : {x.field, x.ld_field, x.stride_field})
    if (offset % 8 || offset + 8 > bytes) return false;
  return x.type <= DEEPGEN_U8 && x.slot < DEEPGEN_ARG_COUNT && x.stride <= DEEPGEN_ARG_COUNT && x.field &&
         (!matrix || (x.ld < DEEPGEN_ARG_COUNT && x.ld_field)) && x.rows >= 1 && x.columns >= 1 &&
         x.entries >= 1 && x.rows_by <= DEEPGEN_SIZES && x.columns_by <= DEEPGEN_SIZES &&
         x.entries_by <= DEEPGEN_SIZES;
}

/// Sizes are at most 2^31 and are not negative: products of an operand's rows with one stay far from an
/// overflow.
bool is_good(const deepgen_range& x) {
  return x.least >= 0 && x.least <= x.most && x.most <= int64_t(1) << 31;
}

/// A layout of this version of the runtime, of a function that calls can pass one to.
bool is_good(const deepgen_function& f, const deepgen_packed_b& b) {
  return f.op == DEEPGEN_OP_GEMM && can_pack(b.type) && b.n >= 1 && b.k >= 1 && b.entries >= 1 &&
         2 * double(b.n) * double(b.k) * double(b.entries) <= 2 * most_packed_elements &&
         b.layout == packed_layout_id(b.type, b.n, b.k, b.entries, b.gated);
}

} // namespace

bool has_good_operands(const deepgen_function& f) {
  if (!f.operands || !f.operand_count || f.operand_count > DEEPGEN_MOST_OPERANDS ||
      f.op > DEEPGEN_OP_ATTENTION)
    return false;
  if (f.packed_b && !is_good(f, *f.packed_b)) return false;
  constexpr uint32_t bytes_of[] = {sizeof(deepgen_gemm_args), sizeof(deepgen_rows_args),
                                   sizeof(deepgen_attention_args)};
  const uint32_t bytes = bytes_of[f.op];
  uint32_t matrices = 0;
  for (uint32_t i = 0; i < f.operand_count; ++i) {
    const deepgen_operand& x = f.operands[i];
    matrices += (x.flags & DEEPGEN_OPERAND_MATRIX) && (x.flags & compared);
    if (bool(x.flags & DEEPGEN_OPERAND_PACKED) != (f.packed_b && x.slot == DEEPGEN_ARG_B)) return false;
    if (!is_good(x, bytes) || (x.flags & DEEPGEN_OPERAND_ASCENDING && i + 1 == f.operand_count)) return false;
  }
  for (const deepgen_range& size : f.sizes)
    if (!is_good(size)) return false;
  if (f.op == DEEPGEN_OP_ATTENTION && (!find_operand(f, DEEPGEN_ARG_Q) || !f.problem)) return false;
  return matrices <= most_compared;
}

deepgen_status take_sizes(const deepgen_function& f, const int64_t* passed, int64_t* sizes) {
  for (int i = 0; i < DEEPGEN_SIZES; ++i)
    if (!take_size(f.sizes[i], passed[i], sizes[i])) return DEEPGEN_ERROR_SIZE;
  return DEEPGEN_OK;
}

int64_t at_sizes(const deepgen_size_rule& rule, const int64_t* sizes, int64_t fixed) {
  if (!rule.factor) return fixed;
  int64_t value = rule.factor;
  for (int i = 0; i < DEEPGEN_SIZES; ++i)
    if (rule.steps[i]) value *= (sizes[i] + rule.steps[i] - 1) / rule.steps[i];
  return value;
}

size_t workspace_at(const deepgen_kernel& k, const int64_t* sizes) {
  if (!k.rules || !k.rules[DEEPGEN_RULE_WORKSPACE].factor) return k.workspace;
  return k.workspace_fixed + size_t(at_sizes(k.rules[DEEPGEN_RULE_WORKSPACE], sizes, 0));
}

const deepgen_operand* find_operand(const deepgen_function& f, uint8_t slot) {
  for (uint32_t i = 0; i < f.operand_count; ++i)
    if (f.operands[i].slot == slot) return &f.operands[i];
  return nullptr;
}

deepgen_status check_arguments(const deepgen_function& f, const CallArguments& args, ArgumentValues& values) {
  uint64_t* slot = values.slot;
  if (f.op == DEEPGEN_OP_ATTENTION)
    clear<slots_of(DEEPGEN_OP_ATTENTION)>(slot);
  else
    clear<slots_of(DEEPGEN_OP_GEMM)>(slot);
  for (int i = 0; i < DEEPGEN_SIZES; ++i) {
    int64_t size; // in a register: a copy of all at once would wait for the stores of each
    if (!take_size(f.sizes[i], args.size[i], size)) return DEEPGEN_ERROR_SIZE;
    values.size[i] = size, slot[DEEPGEN_ARG_M + i] = uint64_t(size);
  }
  const auto is_none = [&](int i) { return is_ranged(f.sizes[i]) && !values.size[i]; };
  const bool sums = !is_none(2);
  const bool attends = f.op == DEEPGEN_OP_ATTENTION; // without keys, it writes zeros
  values.writes_nothing = is_none(0) || (is_none(1) && !attends) || is_none(3);
  Matrix matrices[most_compared];
  uint32_t count = 0;
  for (uint32_t i = 0; i < f.operand_count; ++i) {
    const deepgen_operand& x = f.operands[i];
    if (x.flags & DEEPGEN_OPERAND_SCALAR) {
      if (deepgen_status status = check_scalar(x, args, sums, slot)) return status;
      continue;
    }
    const auto data = uintptr_t(field<const void*>(args, x.field));
    slot[x.slot] = data;
    if (!is_used(x, args)) continue;
    Matrix matrix = shape_of(x, data, values.size); // a copy: registers have it until it is compared
    const bool empty = is_empty(matrix);
    if (!data && !empty) return DEEPGEN_ERROR_NULL;
    if (data & (matrix.size - 1)) return DEEPGEN_ERROR_ALIGNMENT;
    if (x.flags & DEEPGEN_OPERAND_PACKED) {
      if (deepgen_status status = check_packed(f, slot[x.slot])) return status;
      continue;
    }
    if (!(x.flags & DEEPGEN_OPERAND_MATRIX)) continue;
    if (deepgen_status status = check_matrix(x, args, slot, matrix)) return status;
    if (x.flags & compared && !empty) matrices[count++] = matrix;
  }
  if (attends) return check_attention(f, *static_cast<const deepgen_attention_args*>(args.fields), values);
  return count > 1 ? check_overlaps(matrices, count) : DEEPGEN_OK;
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen
