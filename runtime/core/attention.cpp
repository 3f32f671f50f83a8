// The arguments of an attention that no other operator has.
#include "runtime/core/arguments.h"

#include <cmath>
#include <cstring>
#include <initializer_list>
#include <utility>

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

/// An operand of tokens, heads and batch entries, with its strides as a call passed them.
struct Tokens {
  int64_t token, head, batch;
  int64_t tokens, heads, columns, entries;
  uint32_t size; ///< bytes of an element
};

struct Extent {
  int64_t count, stride;
};

/// The last element's distance from the first one, in bytes, fits an address.
bool is_within(const Tokens& x) {
  int64_t sum = x.columns, product = 0;
  for (auto [count, stride] :
       {Extent{x.tokens, x.token}, Extent{x.heads, x.head}, Extent{x.entries, x.batch}})
    if (count > 1 &&
        (__builtin_mul_overflow(count - 1, stride, &product) || __builtin_add_overflow(sum, product, &sum)))
      return false;
  return !__builtin_mul_overflow(sum, int64_t(x.size), &product);
}

/// Fills in what 0 stands for. `own`: a batch of 0 means that offsets tell where entries begin. `by_head`:
/// the dense order has heads outside of tokens.
deepgen_status complete(Tokens& x, bool out, bool own, bool by_head) {
  for (int64_t stride : {x.token, x.head, x.batch})
    if (stride < (out ? 0 : DEEPGEN_BROADCAST)) return DEEPGEN_ERROR_STRIDE;
  const int64_t tokens = x.tokens ? x.tokens : 1;
  if (!x.head && __builtin_mul_overflow(by_head ? tokens : 1, x.columns, &x.head))
    return DEEPGEN_ERROR_STRIDE;
  if (!x.token && __builtin_mul_overflow(by_head ? 1 : x.heads, x.columns, &x.token))
    return DEEPGEN_ERROR_STRIDE;
  for (int64_t* stride : {&x.token, &x.head})
    if (*stride == DEEPGEN_BROADCAST) *stride = 0;
  int64_t entry = 0;
  const bool inner = by_head ? __builtin_mul_overflow(x.heads, x.head, &entry)
                             : __builtin_mul_overflow(tokens, x.token, &entry);
  if (inner && !x.batch && !own) return DEEPGEN_ERROR_STRIDE;
  if (!x.batch && !own) x.batch = entry;
  if (x.batch == DEEPGEN_BROADCAST) x.batch = 0;
  return is_within(x) ? DEEPGEN_OK : DEEPGEN_ERROR_STRIDE;
}

/// The same of a bias, whose rows are of keys: 0 is dense of what is not the same for all.
deepgen_status complete_bias(Tokens& x) {
  int64_t extent = x.columns ? x.columns : 1;
  for (auto [count, stride] :
       {std::pair(x.tokens, &x.token), std::pair(x.heads, &x.head), std::pair(x.entries, &x.batch)}) {
    if (*stride < DEEPGEN_BROADCAST) return DEEPGEN_ERROR_STRIDE;
    if (*stride == DEEPGEN_BROADCAST) {
      *stride = 0;
      continue;
    }
    if (!*stride) *stride = extent;
    if (__builtin_mul_overflow(count ? count : 1, *stride, &extent)) return DEEPGEN_ERROR_STRIDE;
  }
  return is_within(x) ? DEEPGEN_OK : DEEPGEN_ERROR_STRIDE;
}

Tokens tokens_of(const deepgen_operand& x, const int64_t* sizes, int64_t token, int64_t head, int64_t batch) {
  return {token,     head,
          batch,     scaled(x.rows, x.rows_by, sizes),
          x.entries, scaled(x.columns, x.columns_by, sizes),
          sizes[3],  size_of(x.type)};
}

void put(double x, uint64_t& slot) {
  const float narrow = float(x);
  slot = 0;
  std::memcpy(&slot, &narrow, sizeof narrow);
}

bool is_window(const char* problem) { return std::strstr(problem, " mask=window "); }

/// How far apart the entries' pages are in the table, in ids.
deepgen_status check_page_table(const deepgen_attention_args& x, int64_t page, ArgumentValues& values) {
  int64_t stride = x.page_table_stride, bytes = 0;
  if (stride < DEEPGEN_BROADCAST) return DEEPGEN_ERROR_STRIDE;
  if (!stride) stride = (values.size[1] + page - 1) / page;
  if (stride == DEEPGEN_BROADCAST) stride = 0;
  if (__builtin_mul_overflow(values.size[3], stride, &bytes) || __builtin_mul_overflow(bytes, 4, &bytes))
    return DEEPGEN_ERROR_STRIDE;
  values.slot[DEEPGEN_ARG_PAGE_TABLE_STRIDE] = uint64_t(stride);
  return DEEPGEN_OK;
}

/// What kernels do with it in f32. Rounded to 0, it makes the score of a masked key, -inf, no number; close
/// to the greatest, so does its product with log2 e, which is infinite then, of a score of 0. Subnormal
/// numbers are 0 where a caller has the CPU flush them.
bool is_scale(double x) { return x == 0 || (std::fabs(x) >= 0x1p-126 && std::fabs(x) <= 0x1p+127); }

/// Rounded to 0 it would be none, and infinite it would make a score of 0 no number.
bool is_softcap(double x) { return x == 0 || (x >= 0x1p-126 && x <= double(__FLT_MAX__)); }

/// What the function was not built for, though a call asks for it.
bool asks_for_more(const deepgen_function& f, const deepgen_attention_args& x) {
  const auto lacks = [&](deepgen_arg slot) { return !find_operand(f, slot); };
  return (x.lse && lacks(DEEPGEN_ARG_LSE)) || (x.sink && lacks(DEEPGEN_ARG_SINK)) ||
         (x.query_offsets && lacks(DEEPGEN_ARG_QUERY_OFFSETS)) ||
         (x.key_offsets && lacks(DEEPGEN_ARG_KEY_OFFSETS)) || (x.keys_used && lacks(DEEPGEN_ARG_KEYS_USED)) ||
         ((x.page_table || x.page_table_stride) && lacks(DEEPGEN_ARG_PAGE_TABLE)) ||
         ((x.bias || x.bias_query || x.bias_head || x.bias_batch) && lacks(DEEPGEN_ARG_BIAS)) ||
         (x.softcap != 0 && lacks(DEEPGEN_ARG_SOFTCAP)) ||
         ((x.window_left != -1 || x.window_right != -1) && !is_window(f.problem));
}

} // namespace

int64_t page_size_of(const char* problem) {
  const char* text = std::strstr(problem, " page=");
  int64_t size = 0;
  for (text = text ? text + 6 : ""; *text >= '0' && *text <= '9' && size < 1 << 20; ++text)
    size = 10 * size + (*text - '0');
  return size;
}

deepgen_status check_attention(const deepgen_function& f, const deepgen_attention_args& x,
                               ArgumentValues& values) {
  if (asks_for_more(f, x) || x.window_left < -1 || x.window_right < -1 || !is_scale(x.scale) ||
      !is_softcap(x.softcap))
    return DEEPGEN_ERROR_ARGUMENT;
  for (const int32_t* table : {x.query_offsets, x.key_offsets, x.keys_used})
    if (uintptr_t(table) % sizeof *table) return DEEPGEN_ERROR_ALIGNMENT;
  const bool queries_packed = x.query_offsets, keys_packed = x.key_offsets;
  const int64_t page = page_size_of(f.problem);
  const struct {
    deepgen_arg slot, token; ///< the strides' slots follow each other
    int64_t strides[3];
    bool out, packed, by_head;
  } all[] = {
      {DEEPGEN_ARG_Q, DEEPGEN_ARG_Q_TOKEN, {x.q_token, x.q_head, x.q_batch}, false, queries_packed, false},
      {DEEPGEN_ARG_KEY,
       DEEPGEN_ARG_KEY_TOKEN,
       {x.key_token, x.key_head, x.key_batch},
       false,
       keys_packed,
       false},
      {DEEPGEN_ARG_VALUE,
       DEEPGEN_ARG_VALUE_TOKEN,
       {x.value_token, x.value_head, x.value_batch},
       false,
       keys_packed,
       false},
      {DEEPGEN_ARG_OUT,
       DEEPGEN_ARG_OUT_TOKEN,
       {x.out_token, x.out_head, x.out_batch},
       true,
       queries_packed,
       false},
      {DEEPGEN_ARG_LSE,
       DEEPGEN_ARG_LSE_TOKEN,
       {x.lse_token, x.lse_head, x.lse_batch},
       true,
       queries_packed,
       !queries_packed}};
  for (const auto& one : all) {
    const deepgen_operand* operand = find_operand(f, one.slot);
    if (!operand) continue;
    Tokens t = tokens_of(*operand, values.size, one.strides[0], one.strides[1], one.strides[2]);
    if (page && (one.slot == DEEPGEN_ARG_KEY || one.slot == DEEPGEN_ARG_VALUE))
      t.tokens = page, t.entries = INT32_MAX; // pages
    if (deepgen_status status = complete(t, one.out, one.packed, one.by_head)) return status;
    uint64_t* slot = values.slot + one.token;
    slot[0] = uint64_t(t.token), slot[1] = uint64_t(t.head), slot[2] = uint64_t(t.batch);
  }
  if (page)
    if (deepgen_status status = check_page_table(x, page, values)) return status;
  if (const deepgen_operand* bias = find_operand(f, DEEPGEN_ARG_BIAS)) {
    Tokens t = tokens_of(*bias, values.size, x.bias_query, x.bias_head, x.bias_batch);
    if (deepgen_status status = complete_bias(t)) return status;
    uint64_t* slot = values.slot + DEEPGEN_ARG_BIAS_QUERY;
    slot[0] = uint64_t(t.token), slot[1] = uint64_t(t.head), slot[2] = uint64_t(t.batch);
  }
  const double columns = double(find_operand(f, DEEPGEN_ARG_Q)->columns);
  put(x.scale == 0 ? 1 / std::sqrt(columns) : x.scale, values.slot[DEEPGEN_ARG_SCORE_SCALE]);
  values.slot[DEEPGEN_ARG_WINDOW_LEFT] = uint64_t(x.window_left);
  values.slot[DEEPGEN_ARG_WINDOW_RIGHT] = uint64_t(x.window_right);
  return DEEPGEN_OK;
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen
