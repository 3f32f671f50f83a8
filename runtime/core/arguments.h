// Checks the arguments of a call and turns them into the values of a kernel's argument slots. Internal.
#pragma once

#include "runtime/core/abi.h"

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {

/// The value of each deepgen_arg; ranges and workspace belong to a task and are filled later, tensor maps by
/// the launch. Slots of operands that the function does not have are 0, up to slots_of() its operator.
struct ArgumentValues {
  uint64_t slot[DEEPGEN_ARG_COUNT];
  int64_t size[DEEPGEN_SIZES]; ///< of this call
  bool writes_nothing;         ///< D has no elements: there is nothing to run
};

/// A call of any operator: its struct of arguments, whose fields deepgen_operand points to.
struct CallArguments {
  const void* fields;
  void* workspace;
  size_t workspace_bytes;
  bool reads_optional; ///< operands with DEEPGEN_OPERAND_OPTIONAL
  int64_t size[DEEPGEN_SIZES];
};
/// C is read when beta is NaN, too.
inline CallArguments call_arguments(const deepgen_gemm_args& x) {
  return {&x, x.workspace, x.workspace_bytes, x.beta != 0, {x.m, x.n, x.k, x.batch}};
}
inline CallArguments call_arguments(const deepgen_rows_args& x) {
  constexpr int64_t own = DEEPGEN_AS_BUILT; // nobody passes sizes of rows
  return {&x, x.workspace, x.workspace_bytes, false, {own, own, own, own}};
}

inline CallArguments call_arguments(const deepgen_attention_args& x) {
  return {&x, x.workspace, x.workspace_bytes, false, {x.max_queries, x.max_keys, DEEPGEN_AS_BUILT, x.batch}};
}

inline deepgen_op op_of(const deepgen_gemm_args*) { return DEEPGEN_OP_GEMM; }
inline deepgen_op op_of(const deepgen_rows_args*) { return DEEPGEN_OP_ROWS; }
inline deepgen_op op_of(const deepgen_attention_args*) { return DEEPGEN_OP_ATTENTION; }

/// Whether a function of this runtime's takes this struct of arguments: what each entry point asks first.
template <typename Args>
deepgen_status accept(const deepgen_function* function, const Args* args) {
  if (!function || !args) return DEEPGEN_ERROR_NULL;
  if (!is_current(*function) || !is_current(*args)) return DEEPGEN_ERROR_VERSION;
  return function->op == uint32_t(op_of(args)) ? DEEPGEN_OK : DEEPGEN_ERROR_ARGUMENT;
}

/// The sizes of a call from what it passed.
deepgen_status take_sizes(const deepgen_function&, const int64_t* passed, int64_t* sizes);

inline bool is_ranged(const deepgen_range& x) { return x.least != x.most; }

/// Whether a call of these sizes may run the kernel.
inline bool takes(const deepgen_kernel& k, const int64_t* sizes) {
  for (int i = 0; k.taken && i < DEEPGEN_SIZES; ++i)
    if (sizes[i] && (sizes[i] < k.taken[i].least || sizes[i] > k.taken[i].most)) return false;
  return true;
}

/// One of an operand's numbers in a call: `by` is one of its three fields of that name.
inline int64_t scaled(int64_t number, uint8_t by, const int64_t* sizes) {
  return by ? number * sizes[by - 1] : number;
}

/// What the rule gives at these sizes; `fixed` where there is none.
int64_t at_sizes(const deepgen_size_rule&, const int64_t* sizes, int64_t fixed);

/// Bytes of scratch that the kernel needs at these sizes: of a task on the CPU, of a call on a GPU.
size_t workspace_at(const deepgen_kernel&, const int64_t* sizes);

/// Everything but the workspace. On an error `values` is unspecified. The function is well-formed.
deepgen_status check_arguments(const deepgen_function& function, const CallArguments& args,
                               ArgumentValues& values);

/// Whether calls of the function may take this memory as B; `slot` is then where its panels begin. Defined
/// beside what packs (runtime/core/packed.cpp).
deepgen_status check_packed(const deepgen_function& function, uint64_t& slot);
/// Tokens of a page of an attention's keys, by the problem's key; 0: there are no pages.
int64_t page_size_of(const char* problem);
/// The part of it that attention alone has: strides, scales, windows. The sizes are known.
deepgen_status check_attention(const deepgen_function& function, const deepgen_attention_args& args,
                               ArgumentValues& values);

/// Whether a slot is of a tensor map, which the launch fills.
inline bool is_map(uint8_t slot) {
  return (slot >= DEEPGEN_ARG_MAP_A && slot <= DEEPGEN_ARG_MAP_MULTIPLIER) ||
         (slot >= DEEPGEN_ARG_MAP_Q && slot <= DEEPGEN_ARG_MAP_VALUE);
}

/// How many slots calls of an operator have: those of attention come behind all others. The rest is not
/// cleared: to clear all of them took a fifth of the time of the checks of a small GEMM.
constexpr uint32_t slots_of(uint32_t op) {
  return op == DEEPGEN_OP_ATTENTION ? uint32_t(DEEPGEN_ARG_COUNT) : DEEPGEN_ARG_BATCH + 1;
}

/// Bytes of an element in memory; `type` is a deepgen_type.
inline uint32_t size_of(uint8_t type) {
  static constexpr uint8_t sizes[] = {4, 8, 2, 2, 4, 1, 1, 1, 4, 1}; // or it is built anew in each call
  static_assert(sizeof sizes == DEEPGEN_U8 + 1);
  return sizes[type];
}

/// Whether the function's operands can be worked with: check_arguments() may be called.
bool has_good_operands(const deepgen_function& function);

/// The operand of this slot, or null.
const deepgen_operand* find_operand(const deepgen_function& function, uint8_t slot);

/// Whether a call reads or writes memory of the operand.
inline bool is_used(const deepgen_operand& x, const CallArguments& args) {
  return !(x.flags & DEEPGEN_OPERAND_SCALAR) &&
         (args.reads_optional || !(x.flags & DEEPGEN_OPERAND_OPTIONAL));
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen
