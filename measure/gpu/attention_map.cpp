#include "measure/gpu/attention_map.h"

#include "runtime/include/deepgen/kernel_abi.h"

namespace deepgen {

TokenMap token_map(const Attention& p, const std::string& operand, const SlotValues& call) {
  const bool q = operand == "q", value = operand == "value";
  const Type type = q ? p.q : p.kv;
  const auto size = uint64_t(size_of(type));
  const deepgen_arg base = q       ? DEEPGEN_ARG_Q
                           : value ? DEEPGEN_ARG_VALUE
                                   : DEEPGEN_ARG_KEY,
                    token = q       ? DEEPGEN_ARG_Q_TOKEN
                            : value ? DEEPGEN_ARG_VALUE_TOKEN
                                    : DEEPGEN_ARG_KEY_TOKEN;
  uint64_t tokens = call[q ? DEEPGEN_ARG_M : DEEPGEN_ARG_N];
  // Where offsets tell where entries begin, the host does not know how many tokens there are.
  if (tokens && call[q ? DEEPGEN_ARG_QUERY_OFFSETS : DEEPGEN_ARG_KEY_OFFSETS]) tokens = INT32_MAX;
  uint64_t entries = call[DEEPGEN_ARG_BATCH];
  if (!q && tokens && entries && call[DEEPGEN_ARG_PAGE_TABLE]) tokens = entries = INT32_MAX; // pages
  return {type,
          call[base],
          {uint64_t(value ? p.value_dim : p.head_dim), tokens, uint64_t(q ? p.heads : p.kv_heads), entries},
          {call[size_t(token)] * size, call[size_t(token) + 1] * size, call[size_t(token) + 2] * size}};
}

} // namespace deepgen
