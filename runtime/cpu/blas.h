// OpenBLAS in place of a kernel, found by dlopen. Internal.
#pragma once

#include "runtime/core/arguments.h"
#include "runtime/core/fallback.h"

namespace deepgen::blas {
inline namespace DEEPGEN_ABI_NAMESPACE {

template <typename T>
using Gemm = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k, T alpha, const T* a,
                      int lda, const T* b, int ldb, T beta, T* c, int ldc);

struct Library {
  Gemm<float> sgemm = nullptr;
  Gemm<double> dgemm = nullptr;
  int (*threads)() = nullptr;
  char version[24] = {}; ///< "0.3.21"
};

/// Whether the description can be worked with.
bool well_formed(const deepgen_vendor_call&);

/// Looks for the library that the call wants and keeps what it finds in the call's state. With start-up, so
/// that no call loads a library.
void look_for(const deepgen_vendor_call&);

/// The library; only while state_of() a call is Fallback::runs.
const Library& current();

/// What calls run now.
Fallback state_of(const deepgen_vendor_call&);

/// The whole of a call, or false: nothing was written, and the kernel has to run. At most `threads` tasks.
bool run(const deepgen_function&, const deepgen_kernel&, const ArgumentValues&, bool reads_c, int threads);

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::blas
