// The libraries that DeepGen is measured against, each called as its users call it, on one thread.
#pragma once

#include "rounds.h"

#include <deepgen/runtime.h>

#include <cstdint>
#include <vector>

struct deepgen_function;

struct Row {
  const char* name;
  int64_t m, n, k, batch;
  int a_transposed, b_transposed, bias, gelu;
  deepgen_status (*run)(const deepgen_gemm_args*);
  const deepgen_function* function;
  double flops() const { return 2.0 * double(m) * double(n) * double(k) * double(batch); }
};

struct Operands {
  const float *a, *b, *bias;
  float* d;
};

/// On one thread.
std::vector<Arm> peer_arms(const Row&, const Operands&);
/// OpenBLAS and oneDNN on so many threads.
std::vector<Arm> threaded_peer_arms(const Row&, const Operands&, int threads);
