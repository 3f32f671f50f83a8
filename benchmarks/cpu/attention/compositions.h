// Attention as users compose it of products and a softmax, on one thread.
#pragma once

#include "../rounds.h"

#include <deepgen/runtime.h>

#include <cstdint>
#include <vector>

struct deepgen_function;

/// A call: [batch, token, head, dimension], f32. The last query sees the last key.
struct Call {
  const char* name;
  int64_t heads, kv_heads, dimension;
  bool causal;
  int64_t batch, queries, keys;
  deepgen_status (*run)(const deepgen_attention_args*);
  const deepgen_function* function;

  int64_t group() const { return heads / kv_heads; }
  /// Keys that query t sees.
  int64_t seen(int64_t t) const { return causal ? keys - queries + t + 1 : keys; }
  double flops() const {
    double pairs = 0;
    for (int64_t t = 0; t < queries; ++t) pairs += double(seen(t));
    return 4 * double(batch * heads * dimension) * pairs;
  }
};

struct AttentionOperands {
  std::vector<float> q, key, value, out;
};

/// By OpenBLAS, by oneDNN's sgemm: two products and a softmax for 128 rows of a head at a time, whose scores
/// stay in the cache, and for what these see of keys alone. By oneDNN's primitives: all heads at once, with a
/// matrix that masks; of as many heads of K as of Q, and more than one query. What is not installed is left
/// out, with a line on stderr.
std::vector<Arm> compositions(const Call&, AttentionOperands&);

/// kPeakOperations products and sums in registers alone, in the CPU's widest vectors.
Arm peak_arm();
inline constexpr double kPeakOperations = 1 << 22;
