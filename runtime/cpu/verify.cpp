// deepgen_verify(): a function against a plain loop in f64, in the program and on the machine that it runs
// on. CPU only.
#include "runtime/cpu/verify.h"

#include "runtime/cpu/select.h"

#include <cstdio>
#include <initializer_list>

using namespace deepgen;

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
  for (const bool padded : {false, true}) {
    (function->op == DEEPGEN_OP_ROWS ? verify_rows : verify_gemm)(*function, padded, finding);
    if (finding.status == DEEPGEN_ERROR_WORKSPACE)
      std::snprintf(found, sizeof found, "%s: no memory for its operands", function->name);
    if (finding.status == DEEPGEN_ERROR_WRONG_RESULT)
      std::snprintf(found, sizeof found, "%.90s: %s", function->name, finding.text);
    if (finding.status) return say(finding.status);
  }
  const deepgen_operand& d = *find_operand(*function, DEEPGEN_ARG_D);
  std::snprintf(found, sizeof found, "%.90s: %lld of %lld elements checked, all right", function->name,
                (long long)finding.checked, (long long)(d.rows * d.columns * d.entries));
  return say(DEEPGEN_OK);
}
