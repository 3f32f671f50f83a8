// deepgen_verify(): a function against a plain loop in f64, in the program and on the machine that it runs
// on. CPU only.
#include "runtime/cpu/verify.h"

#include "runtime/cpu/select.h"

#include <cstdio>
#include <initializer_list>

using namespace deepgen;

namespace deepgen {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

constexpr double most_of_a_call = 2e10; ///< products; of more, a call of smaller sizes is verified

/// One end of the sizes that a kernel takes, within the function's ranges, brought down where it takes long.
void end_of(const deepgen_function& f, const deepgen_kernel& k, bool upper, int64_t* sizes) {
  double products = 1;
  int64_t least[DEEPGEN_SIZES];
  for (int i = 0; i < DEEPGEN_SIZES; ++i) {
    const deepgen_range& x = is_ranged(f.sizes[i]) && k.taken ? k.taken[i] : f.sizes[i];
    least[i] = x.least ? x.least : is_ranged(f.sizes[i]);
    sizes[i] = upper ? x.most : least[i];
    products *= sizes[i] ? double(sizes[i]) : 1;
  }
  for (int i = 0; i < DEEPGEN_SIZES; ++i)
    while (is_ranged(f.sizes[i]) && products > most_of_a_call && sizes[i] / 2 >= least[i])
      sizes[i] /= 2, products /= 2;
}

/// The same of an attention, whose largest call is far beyond what a second has room for: near to it, a call
/// that takes the kernel. False where each takes long.
bool end_of_attention(const deepgen_function& f, const deepgen_kernel& k, bool upper, int64_t* sizes) {
  constexpr int64_t most[DEEPGEN_SIZES] = {131, 389, 1, 3};
  const deepgen_operand* q = find_operand(f, DEEPGEN_ARG_Q);
  double products = q ? 2 * double(q->entries) * double(q->columns) : 1;
  for (int i = 0; i < DEEPGEN_SIZES; ++i) {
    sizes[i] = upper ? most[i] : 1;
    if (sizes[i] > f.sizes[i].most) sizes[i] = f.sizes[i].most;
    if (k.taken && sizes[i] < k.taken[i].least) sizes[i] = k.taken[i].least;
    if (k.taken && sizes[i] > k.taken[i].most) sizes[i] = k.taken[i].most;
    products *= double(sizes[i]);
  }
  return products <= most_of_a_call;
}

/// Plain and padded calls of these sizes; `found` has room for a sentence about what is wrong.
deepgen_status check_calls(const deepgen_function& f, const int64_t* sizes, Finding& finding, char* found,
                           size_t room) {
  for (const bool padded : {false, true}) {
    constexpr void (*verify[])(const deepgen_function&, bool, const int64_t*,
                               Finding&) = {verify_gemm, verify_rows, verify_attention}; // by deepgen_op
    verify[f.op](f, padded, sizes, finding);
    if (finding.status == DEEPGEN_ERROR_WORKSPACE)
      std::snprintf(found, room, "%s: no memory for its operands", f.name);
    if (finding.status == DEEPGEN_ERROR_WRONG_RESULT)
      std::snprintf(found, room, "%.90s: %s", f.name, finding.text);
    if (finding.status) return finding.status;
  }
  return DEEPGEN_OK;
}

bool has_ranges(const deepgen_function& f) {
  for (const deepgen_range& size : f.sizes)
    if (is_ranged(size)) return true;
  return false;
}

} // namespace
} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen

deepgen_status deepgen_verify(const deepgen_function* function, char* text, size_t size) {
  char found[256] = "";
  const auto say = [&](deepgen_status status) {
    if (text && size) std::snprintf(text, size, "%s", found);
    return status;
  };
  if (!function) return say(DEEPGEN_ERROR_NULL);
  if (!is_current(*function)) return say(DEEPGEN_ERROR_VERSION);
  if (!selected_kernel(*function)) return say(DEEPGEN_ERROR_NO_KERNEL);
  Finding finding = {};
  int64_t sizes[DEEPGEN_SIZES], checked = 0, all = 0;
  const deepgen_arg output = function->op == DEEPGEN_OP_ATTENTION ? DEEPGEN_ARG_OUT : DEEPGEN_ARG_D;
  const deepgen_operand* d = find_operand(*function, output); // there, where a check is right
  for (const deepgen_kernel* k = selected_kernel(*function);; ++k) {
    for (const bool upper : {false, true}) {
      if (!upper && !has_ranges(*function)) continue;
      bool is_short = true;
      if (function->op == DEEPGEN_OP_ATTENTION)
        is_short = end_of_attention(*function, *k, upper, sizes);
      else
        end_of(*function, *k, upper, sizes);
      if (const deepgen_status status =
              is_short ? check_calls(*function, sizes, finding, found, sizeof found) : DEEPGEN_OK)
        return say(status);
      checked += is_short ? finding.checked : 0;
      all += scaled(d->rows, d->rows_by, sizes) * scaled(d->columns, d->columns_by, sizes) *
             scaled(d->entries, d->entries_by, sizes);
    }
    if (!k->taken) break;
  }
  std::snprintf(found, sizeof found, "%.90s: %lld of %lld elements checked, all right", function->name,
                (long long)checked, (long long)all);
  return say(DEEPGEN_OK);
}
