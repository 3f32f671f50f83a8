#include "measure/vendor.h"

#include "measure/clones.h"

#include <cmath>
#include <cstdlib>
#include <dlfcn.h>
#include <sstream>

namespace deepgen {
namespace {

constexpr int kRowMajor = 101, kNoTranspose = 111, kTranspose = 112;

template <typename T>
using Gemm = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k, T alpha, const T* a,
                      int lda, const T* b, int ldb, T beta, T* c, int ldc);

template <typename T>
T gelu(T x) {
  return T(0.5) * x * (1 + std::erf(x * T(M_SQRT1_2)));
}
template <typename T>
T silu(T x) {
  return x / (1 + std::exp(-x));
}

template <typename T>
[[gnu::always_inline]] inline void apply_row(EpilogueOp op, T* row, const T* bias, int64_t n) {
  switch (op) {
  case EpilogueOp::bias:
    for (int64_t j = 0; j < n; ++j)
      row[j] += bias[j];
    break;
  case EpilogueOp::relu:
    for (int64_t j = 0; j < n; ++j)
      row[j] = row[j] > 0 ? row[j] : 0;
    break;
  case EpilogueOp::gelu:
    for (int64_t j = 0; j < n; ++j)
      row[j] = gelu(row[j]);
    break;
  case EpilogueOp::silu:
    for (int64_t j = 0; j < n; ++j)
      row[j] = silu(row[j]);
    break;
  default:
    break;
  }
}

DEEPGEN_CLONES void apply(EpilogueOp op, float* row, const float* bias, int64_t n) {
  apply_row(op, row, bias, n);
}
DEEPGEN_CLONES void apply(EpilogueOp op, double* row, const double* bias, int64_t n) {
  apply_row(op, row, bias, n);
}

template <typename T>
void call(Gemm<T> gemm, const Problem& p, const CallBuffers& x) {
  const auto* a = static_cast<const T*>(x.a);
  const auto* b = static_cast<const T*>(x.b);
  const auto* bias = static_cast<const T*>(x.bias);
  auto* d = static_cast<T*>(x.d);
  for (int64_t entry = 0; entry < p.batch; ++entry, a += x.stride_a, b += x.stride_b, d += x.stride_d) {
    gemm(kRowMajor, p.a_transposed() ? kTranspose : kNoTranspose,
         p.b_transposed() ? kTranspose : kNoTranspose, int(p.m), int(p.n), int(p.k), T(x.alpha), a,
         int(x.lda), b, int(x.ldb), 0, d, int(x.ldd));
    // Row by row, while the row is in a cache.
    for (int64_t r = 0; r < p.m && !p.epilogue.empty(); ++r)
      for (EpilogueOp op : p.epilogue)
        apply(op, d + r * x.ldd, bias, p.n);
  }
}

template <typename Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

/// "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..." -> "openblas 0.3.21"
std::string version(void* library) {
  auto config = symbol<const char* (*)()>(library, "openblas_get_config");
  if (!config)
    return "openblas";
  std::istringstream words(config());
  std::string product, number;
  words >> product >> number;
  return "openblas " + number;
}

} // namespace

std::optional<Vendor> Vendor::open() {
  setenv("OPENBLAS_NUM_THREADS", "1", 1); // read when the library is loaded: it then starts no threads
  for (const char* file : {"libopenblas.so.0", "libopenblas.so", "libopenblasp.so.0", "libopenblaso.so.0"}) {
    void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library)
      continue;
    Vendor vendor;
    vendor.sgemm_ = dlsym(library, "cblas_sgemm");
    vendor.dgemm_ = dlsym(library, "cblas_dgemm");
    if (!vendor.sgemm_ || !vendor.dgemm_)
      continue;
    if (auto set_threads = symbol<void (*)(int)>(library, "openblas_set_num_threads"))
      set_threads(1);
    vendor.name_ = version(library);
    return vendor;
  }
  return std::nullopt;
}

std::function<void()> Vendor::prepare(const Problem& p, const CallBuffers& x) const {
  if (p.accumulate == Type::f32)
    return [gemm = reinterpret_cast<Gemm<float>>(sgemm_), p, x] { call(gemm, p, x); };
  return [gemm = reinterpret_cast<Gemm<double>>(dgemm_), p, x] { call(gemm, p, x); };
}

} // namespace deepgen
