// The libraries that DeepGen is measured against, each called as its users call it, on one thread.
#pragma once

#include <deepgen/runtime.h>

#include <cstdint>
#include <functional>
#include <string>
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

/// One way to compute a row. `counted`: same contract as DeepGen's call (operands as the caller stores them);
/// a peer that gets B repacked before the clock starts is shown, but is not part of "best peer".
struct Arm {
  std::string name;
  bool counted;
  std::function<void()> call;
};

/// On one thread.
std::vector<Arm> peer_arms(const Row&, const Operands&);
/// OpenBLAS and oneDNN on so many threads.
std::vector<Arm> threaded_peer_arms(const Row&, const Operands&, int threads);
