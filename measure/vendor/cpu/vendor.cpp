#include "measure/vendor/cpu/vendor.h"

#include "base/files/library.h"
#include "measure/vendor/cpu/vendor_epilogue.h"

#include <cstdlib>
#include <dlfcn.h>
#include <sstream>

namespace deepgen {
namespace {

constexpr int kRowMajor = 101, kNoTranspose = 111, kTranspose = 112;

template <typename T>
using Cblas = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k, T alpha, const T* a,
                       int lda, const T* b, int ldb, T beta, T* c, int ldc);

/// `scratch`: for the sums of both weights; empty without a gate.
template <typename T>
void call(Cblas<T> gemm, const Gemm& p, const CallBuffers& x, const VendorEpilogue<T>& epilogue,
          std::vector<T>& scratch) {
  const auto* a = static_cast<const T*>(x.a);
  const auto* b = static_cast<const T*>(x.b);
  auto* d = static_cast<T*>(x.d);
  for (int64_t entry = 0; entry < p.batch; ++entry, a += x.stride_a, b += x.stride_b, d += x.stride_d) {
    gemm(kRowMajor, p.a_transposed() ? kTranspose : kNoTranspose,
         p.b_transposed() ? kTranspose : kNoTranspose, int(p.m), int(p.sum_columns()), int(p.k), T(x.alpha),
         a, int(x.lda), b, int(x.ldb), 0, p.gate ? scratch.data() : d, int(p.gate ? p.sum_columns() : x.ldd));
    epilogue.run(entry, d, scratch.data());
  }
}

template <typename Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

/// "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..." -> "openblas 0.3.21"
std::string version(void* library) {
  auto config = symbol<const char* (*)()>(library, "openblas_get_config");
  if (!config) return "openblas";
  std::istringstream words(config());
  std::string product, number;
  words >> product >> number;
  return "openblas " + number;
}

} // namespace

std::optional<Vendor> Vendor::open(std::string* why) {
  setenv("OPENBLAS_NUM_THREADS", "1", 1); // read when the library is loaded: it then starts no threads
  for (const char* file : {"libopenblas.so.0", "libopenblas.so", "libopenblasp.so.0", "libopenblaso.so.0"}) {
    const OpenedLibrary found = open_library({file});
    const auto none = [&](const std::string& reason) {
      if (why && why->empty()) *why = reason;
    };
    if (!found) {
      none(found.absence(""));
      continue;
    }
    void* library = found.handle;
    Vendor vendor;
    vendor.sgemm_ = dlsym(library, "cblas_sgemm");
    vendor.dgemm_ = dlsym(library, "cblas_dgemm");
    if (!vendor.sgemm_ || !vendor.dgemm_) {
      none(std::string(file) + " has no cblas_sgemm or cblas_dgemm");
      continue;
    }
    vendor.set_threads_ = symbol<void (*)(int)>(library, "openblas_set_num_threads");
    vendor.use_threads(1);
    vendor.name_ = version(library);
    return vendor;
  }
  return std::nullopt;
}

void Vendor::use_threads(int count) const {
  if (set_threads_) set_threads_(count);
}

namespace {

template <typename T>
std::function<void()> prepared(void* gemm, const Gemm& p, const CallBuffers& x) {
  std::vector<T> scratch(p.gate ? size_t(p.m * p.sum_columns()) : 0);
  return [gemm = reinterpret_cast<Cblas<T>>(gemm), p, x, epilogue = VendorEpilogue<T>(p, x),
          scratch]() mutable { call(gemm, p, x, epilogue, scratch); };
}

} // namespace

std::function<void()> Vendor::prepare(const Gemm& p, const CallBuffers& x) const {
  return p.accumulate == Type::f32 ? prepared<float>(sgemm_, p, x) : prepared<double>(dgemm_, p, x);
}

} // namespace deepgen
