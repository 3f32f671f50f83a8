#include "composition.h"

#include <algorithm>
#include <cmath>
#include <dlfcn.h>
#include <vector>

namespace {

using sizes = attention_kernels::prefill_sizes;

/// cblas_sgemm of OpenBLAS, on one thread; null where it is not installed.
using Sgemm = void (*)(int order, int ta, int tb, int m, int n, int k, float alpha, const float* a, int lda,
                       const float* b, int ldb, float beta, float* c, int ldc);
Sgemm find_sgemm() {
  void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!library) return nullptr;
  if (auto set = reinterpret_cast<void (*)(int)>(dlsym(library, "openblas_set_num_threads"))) set(1);
  return reinterpret_cast<Sgemm>(dlsym(library, "cblas_sgemm"));
}

} // namespace

bool compose(const float* q, const float* key, const float* value, float* out, deepgen_status& status) {
  static const Sgemm sgemm = find_sgemm();
  status = DEEPGEN_OK;
  if (!sgemm) return false;
  constexpr int rows = 101, plain = 111, transposed = 112; // of cblas.h
  constexpr int tokens = sizes::most_queries, dim = sizes::head_dim, q_token = sizes::heads * dim,
                k_token = sizes::kv_heads * dim;
  static_assert(attention_kernels::softmax_sizes::m == tokens &&
                attention_kernels::softmax_sizes::n == tokens);
  static std::vector<float> scores(size_t(tokens) * tokens), weights(scores.size());
  for (int64_t h = 0; h < sizes::heads; ++h) {
    const int64_t own = h * dim, shared = h / (sizes::heads / sizes::kv_heads) * dim;
    sgemm(rows, plain, transposed, tokens, tokens, dim, 1 / std::sqrt(float(dim)), q + own, q_token,
          key + shared, k_token, 0, scores.data(), tokens);
    for (int t = 0; t < tokens; ++t) // causal
      std::fill(&scores[size_t(t) * tokens] + t + 1, &scores[size_t(t) * tokens] + tokens, -HUGE_VALF);
    if ((status = attention_kernels::softmax(scores.data(), weights.data()))) return true;
    sgemm(rows, plain, plain, tokens, dim, tokens, 1, weights.data(), tokens, value + shared, k_token, 0,
          out + own, q_token);
  }
  return true;
}
