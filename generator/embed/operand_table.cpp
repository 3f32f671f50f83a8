#include "generator/embed/operand_table.h"

#include "base/kernel/cpu_isa.h"
#include "base/text/error.h"
#include "runtime/include/deepgen/runtime.h"

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace deepgen {
namespace {

struct Field {
  std::string_view name;
  size_t offset;
};
#define DEEPGEN_FIELD(name) {#name, offsetof(deepgen_gemm_args, name)}
constexpr Field kGemmFields[] = {DEEPGEN_GEMM_OPERAND_FIELDS(DEEPGEN_FIELD)};
#undef DEEPGEN_FIELD
#define DEEPGEN_FIELD(name) {#name, offsetof(deepgen_rows_args, name)}
constexpr Field kRowsFields[] = {DEEPGEN_FIELD(x),
                                 DEEPGEN_FIELD(residual),
                                 DEEPGEN_FIELD(scale),
                                 DEEPGEN_FIELD(bias),
                                 DEEPGEN_FIELD(d),
                                 DEEPGEN_FIELD(residual_out),
                                 DEEPGEN_FIELD(row_scales),
                                 DEEPGEN_FIELD(ldx),
                                 DEEPGEN_FIELD(ld_residual),
                                 DEEPGEN_FIELD(ldd),
                                 DEEPGEN_FIELD(ld_residual_out),
                                 DEEPGEN_FIELD(epsilon)};
#undef DEEPGEN_FIELD
#define DEEPGEN_FIELD(name) {#name, offsetof(deepgen_attention_args, name)}
constexpr Field kAttentionFields[] = {
    DEEPGEN_FIELD(q),         DEEPGEN_FIELD(key),           DEEPGEN_FIELD(value),
    DEEPGEN_FIELD(out),       DEEPGEN_FIELD(lse),           DEEPGEN_FIELD(sink),
    DEEPGEN_FIELD(bias),      DEEPGEN_FIELD(query_offsets), DEEPGEN_FIELD(key_offsets),
    DEEPGEN_FIELD(keys_used), DEEPGEN_FIELD(page_table),    DEEPGEN_FIELD(softcap)};
#undef DEEPGEN_FIELD

static_assert(DEEPGEN_F32 == int(Type::f32) && DEEPGEN_F64 == int(Type::f64) &&
              DEEPGEN_F16 == int(Type::f16) && DEEPGEN_BF16 == int(Type::bf16) &&
              DEEPGEN_TF32 == int(Type::tf32) && DEEPGEN_E4M3 == int(Type::e4m3) &&
              DEEPGEN_E5M2 == int(Type::e5m2) && DEEPGEN_I8 == int(Type::i8) &&
              DEEPGEN_I32 == int(Type::i32) && DEEPGEN_U8 == int(Type::u8));
static_assert(DEEPGEN_ISA_AVXVNNI == isa_avxvnni && DEEPGEN_ISA_AVX512VNNI == isa_avx512vnni &&
              DEEPGEN_ISA_AVX512BF16 == isa_avx512bf16 && DEEPGEN_ISA_AMX == isa_amx);

/// How an operator's functions are called.
struct Interface {
  deepgen_op op;
  std::span<const Field> fields; ///< of its struct of arguments
};
Interface interface_of(const Gemm&) { return {DEEPGEN_OP_GEMM, kGemmFields}; }
Interface interface_of(const Rows&) { return {DEEPGEN_OP_ROWS, kRowsFields}; }
Interface interface_of(const Attention&) { return {DEEPGEN_OP_ATTENTION, kAttentionFields}; }

/// The largest call's, by which operands' numbers are told.
Sizes largest(const Gemm& p) { return p.sizes(); }
Sizes largest(const Rows&) { return {}; }
Sizes largest(const Attention& p) { return {p.queries, p.keys, 1, most_attention_batch}; }

using Ranges = std::array<deepgen_range, DEEPGEN_SIZES>;
Ranges ranges(const Gemm& p) {
  Ranges list;
  for (size_t i = 0; i < size_count; ++i) {
    const int64_t most = p.sizes()[Size(i)];
    list[i] = {p.least[i].value_or(most), most};
  }
  return list;
}
Ranges ranges(const Rows& p) { return {{{p.m, p.m}, {p.n, p.n}, {1, 1}, {1, 1}}}; }
Ranges ranges(const Attention& p) {
  return {{{0, p.queries}, {0, p.keys}, {1, 1}, {0, most_attention_batch}}};
}

/// 0: none of this name. No struct of arguments begins with an operand.
uint32_t field(std::span<const Field> fields, std::string_view name) {
  for (const Field& f : fields)
    if (f.name == name) return uint32_t(f.offset);
  return 0;
}

uint8_t slot(std::string_view name) {
  constexpr std::array<std::string_view, DEEPGEN_ARG_COUNT> names = {DEEPGEN_ARG_NAMES};
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return uint8_t(i);
  return DEEPGEN_ARG_COUNT;
}

uint32_t flags(const Operand& x) {
  const bool scalar = x.role == Operand::Role::scalar;
  return (x.is_matrix() ? DEEPGEN_OPERAND_MATRIX : 0) | (scalar ? DEEPGEN_OPERAND_SCALAR : 0) |
         (x.role == Operand::Role::out ? DEEPGEN_OPERAND_OUT : 0) |
         (!scalar && !x.required ? DEEPGEN_OPERAND_OPTIONAL : 0) |
         (x.in_place ? DEEPGEN_OPERAND_IN_PLACE : 0) | (x.packed ? DEEPGEN_OPERAND_PACKED : 0) |
         (x.limit == Operand::Limit::ascending ? DEEPGEN_OPERAND_ASCENDING : 0) |
         (x.limit == Operand::Limit::not_negative ? DEEPGEN_OPERAND_NOT_NEGATIVE : 0);
}

/// A number of an operand that follows from a size is kept as a multiple of it.
void factor(std::optional<Size> by, const Sizes& most, int64_t& number, uint8_t& row_by) {
  row_by = by ? uint8_t(1 + int(*by)) : 0;
  if (by) number /= most[*by];
}

deepgen_operand row(const Operand& x, const Sizes& most, std::span<const Field> fields) {
  deepgen_operand row{};
  row.slot = slot(x.name), row.ld = row.stride = DEEPGEN_ARG_COUNT;
  row.type = uint8_t(x.type), row.flags = flags(x), row.field = field(fields, x.name);
  row.rows = x.rows, row.columns = x.columns, row.entries = x.entries;
  factor(x.rows_by, most, row.rows, row.rows_by);
  factor(x.columns_by, most, row.columns, row.columns_by);
  factor(x.entries_by, most, row.entries, row.entries_by);
  if (x.is_matrix()) {
    row.ld = slot(x.leading_dimension()), row.ld_field = field(fields, x.leading_dimension());
    row.stride_field = field(fields, x.stride());
    if (row.stride_field) row.stride = slot(x.stride());
  }
  if (row.slot == DEEPGEN_ARG_COUNT || !row.field ||
      (x.is_matrix() && (row.ld == DEEPGEN_ARG_COUNT || !row.ld_field)))
    throw Error(std::string("operand '") + x.name + "' has no slot or no field", "operand_table()", "",
                "a defect: add it to kernel_abi.h and to the struct of arguments in runtime.h");
  return row;
}

} // namespace

deepgen_op op_of(const Problem& p) {
  return std::visit([](const auto& x) { return interface_of(x).op; }, p.which());
}
static_assert(DEEPGEN_SIZES == size_count);

std::array<deepgen_range, DEEPGEN_SIZES> size_ranges(const Problem& p) {
  return std::visit([](const auto& x) { return ranges(x); }, p.which());
}

std::vector<deepgen_operand> operand_table(const Problem& p) {
  const std::span<const Field> fields =
      std::visit([](const auto& x) { return interface_of(x).fields; }, p.which());
  std::vector<deepgen_operand> table;
  const Sizes most = std::visit([](const auto& x) { return largest(x); }, p.which());
  for (const Operand& x : signature(p)) table.push_back(row(x, most, fields));
  return table;
}

} // namespace deepgen
