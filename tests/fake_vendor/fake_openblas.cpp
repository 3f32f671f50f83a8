#include "fake_openblas.h"

namespace {

constexpr int kTranspose = 112;

template <typename T>
void gemm(int ta, int tb, int m, int n, int k, T alpha, const T* a, int lda, const T* b, int ldb, T beta,
          T* c, int ldc) {
  ++fake_openblas::state().calls;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int l = 0; l < k; ++l)
        sum += double(ta == kTranspose ? a[l * lda + i] : a[i * lda + l]) *
               double(tb == kTranspose ? b[j * ldb + l] : b[l * ldb + j]);
      T& out = c[i * ldc + j];
      out = T(double(alpha) * sum) + (beta == 0 ? T(0) : beta * out);
    }
}

} // namespace

fake_openblas::State& fake_openblas::state() {
  static State state;
  return state;
}

extern "C" {
void cblas_sgemm(int, int ta, int tb, int m, int n, int k, float alpha, const float* a, int lda,
                 const float* b, int ldb, float beta, float* c, int ldc) {
  gemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
void cblas_dgemm(int, int ta, int tb, int m, int n, int k, double alpha, const double* a, int lda,
                 const double* b, int ldb, double beta, double* c, int ldc) {
  gemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
int openblas_get_num_threads() { return fake_openblas::state().threads; }
const char* openblas_get_config() { return "OpenBLAS 9.8.7 FAKE"; }
}
