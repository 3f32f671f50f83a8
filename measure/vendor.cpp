#include "measure/vendor.h"

#include "measure/clones.h"
#include "measure/operands.h"

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

/// One step over a row of n values; `y` is its operand: an array for columns and matrices, else one value.
template <typename T>
[[gnu::always_inline]] inline void apply_row(EpilogueOp op, T* row, int64_t n, const T* y, T low, T high) {
  const auto map = [&](auto function) {
    for (int64_t j = 0; j < n; ++j)
      row[j] = function(row[j], j);
  };
  switch (op) {
  case EpilogueOp::bias:
  case EpilogueOp::residual:
    return map([&](T x, int64_t j) { return x + y[j]; });
  case EpilogueOp::multiply:
  case EpilogueOp::scale_col:
    return map([&](T x, int64_t j) { return x * y[j]; });
  case EpilogueOp::bias_row:
    return map([value = *y](T x, int64_t) { return x + value; });
  case EpilogueOp::scale_a:
  case EpilogueOp::scale_b:
  case EpilogueOp::scale_d:
  case EpilogueOp::scale_row:
    return map([value = *y](T x, int64_t) { return x * value; });
  case EpilogueOp::relu:
    return map([](T x, int64_t) { return x > 0 ? x : T(0); });
  case EpilogueOp::clamp:
    return map([=](T x, int64_t) { return x < low ? low : x > high ? high : x; });
  case EpilogueOp::gelu:
    return map([](T x, int64_t) { return T(0.5) * x * (1 + std::erf(x * T(M_SQRT1_2))); });
  case EpilogueOp::gelu_tanh:
    return map([](T x, int64_t) {
      return T(0.5) * x * (1 + std::tanh(T(M_2_SQRTPI * M_SQRT1_2) * (x + T(0.044715) * x * x * x)));
    });
  case EpilogueOp::silu:
    return map([](T x, int64_t) { return x / (1 + std::exp(-x)); });
  case EpilogueOp::sigmoid:
    return map([](T x, int64_t) { return 1 / (1 + std::exp(-x)); });
  }
}

DEEPGEN_CLONES void apply(EpilogueOp op, float* row, int64_t n, const float* y, float low, float high) {
  apply_row(op, row, n, y, low, high);
}
DEEPGEN_CLONES void apply(EpilogueOp op, double* row, int64_t n, const double* y, double low, double high) {
  apply_row(op, row, n, y, low, high);
}

/// A step and where its operand lies.
template <typename T> struct Step {
  EpilogueOp op;
  const T* data = nullptr;
  int64_t entry = 0, row = 0; ///< distances in elements
};

template <typename T> std::vector<Step<T>> steps(const Problem& p, const CallBuffers& x) {
  std::vector<Step<T>> out;
  const std::vector<Operand> operands = operands_of(p);
  for (EpilogueOp op : p.epilogue) {
    Step<T> step{op};
    for (const Operand& operand : operands) {
      if (operand.op != op)
        continue;
      step.data = static_cast<const T*>(x.*operand.data);
      if (operand.shape == Operand::matrix)
        step.entry = x.*operand.stride, step.row = x.*operand.ld;
      else
        step.row = operand.shape == Operand::row;
    }
    out.push_back(step);
  }
  return out;
}

/// gate(row[j]) * row[n + j]
template <typename T> void apply_gate(EpilogueOp gate, T* row, int64_t n, T* out) {
  apply(gate, row, n, nullptr, T(0), T(0));
  for (int64_t j = 0; j < n; ++j)
    out[j] = row[j] * row[n + j];
}

/// `scratch`: for the sums of both weights; empty without a gate.
template <typename T>
void call(Gemm<T> gemm, const Problem& p, const CallBuffers& x, const std::vector<Step<T>>& epilogue,
          std::vector<T>& scratch) {
  const auto* a = static_cast<const T*>(x.a);
  const auto* b = static_cast<const T*>(x.b);
  auto* d = static_cast<T*>(x.d);
  for (int64_t entry = 0; entry < p.batch; ++entry, a += x.stride_a, b += x.stride_b, d += x.stride_d) {
    gemm(kRowMajor, p.a_transposed() ? kTranspose : kNoTranspose,
         p.b_transposed() ? kTranspose : kNoTranspose, int(p.m), int(p.sum_columns()), int(p.k),
         T(x.alpha), a, int(x.lda), b, int(x.ldb), 0, p.gate ? scratch.data() : d,
         int(p.gate ? p.sum_columns() : x.ldd));
    // Row by row, while the row is in a cache.
    for (int64_t r = 0; r < p.m && (p.gate || !epilogue.empty()); ++r) {
      if (p.gate)
        apply_gate(*p.gate, &scratch[size_t(r * p.sum_columns())], p.n, d + r * x.ldd);
      for (const Step<T>& step : epilogue)
        apply(step.op, d + r * x.ldd, p.n, step.data + entry * step.entry + r * step.row, T(x.clamp_low),
              T(x.clamp_high));
    }
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

namespace {

template <typename T> std::function<void()> prepared(void* gemm, const Problem& p, const CallBuffers& x) {
  std::vector<T> scratch(p.gate ? size_t(p.m * p.sum_columns()) : 0);
  return [gemm = reinterpret_cast<Gemm<T>>(gemm), p, x, epilogue = steps<T>(p, x), scratch]() mutable {
    call(gemm, p, x, epilogue, scratch);
  };
}

} // namespace

std::function<void()> Vendor::prepare(const Problem& p, const CallBuffers& x) const {
  return p.accumulate == Type::f32 ? prepared<float>(sgemm_, p, x) : prepared<double>(dgemm_, p, x);
}

} // namespace deepgen
