// librocblas.so without a GPU: it multiplies on the host, and complains of what the library would refuse or
// misread. Numbers are those of ROCm 5 to 7.
#include "fake_blas.h"

#include <cstdio>
#include <cstring>
#include <set>

namespace fake_hip {
namespace {

enum Status : int {
  kSuccess = 0,
  kInvalidHandle = 1,
  kNotImplemented = 2,
  kInvalidPointer = 3,
  kInvalidValue = 11
};
enum Operation : int { kPlain = 111, kTransposed = 112 };

struct Handle {
  void* stream = nullptr;
  size_t workspace = 0;
};
std::set<Handle*>& handles() {
  static std::set<Handle*> all;
  return all;
}

int type_of(int rocblas) {
  switch (rocblas) {
  case 150:
    return r16f;
  case 151:
    return r32f;
  case 152:
    return r64f;
  case 160:
    return r8i;
  case 162:
    return r32i;
  case 168:
    return r16bf;
  default:
    return -1;
  }
}

bool serves(int a, int b, int d, int compute) {
  if (a != b) return false;
  if (a == r64f) return d == r64f && compute == r64f;
  if (a == r8i) return d == r32i && compute == r32i;
  return compute == r32f && (d == a || d == r32f) && (a == r32f || a == r16f || a == r16bf);
}

} // namespace
} // namespace fake_hip

using namespace fake_hip;

extern "C" {

int rocblas_create_handle(void** handle) {
  ENTER(rocblas_create_handle);
  auto* fresh = new Handle; // as long as the process
  handles().insert(fresh);
  return *handle = fresh, kSuccess;
}
int rocblas_get_version_string(char* text, size_t bytes) {
  return std::snprintf(text, bytes, "5.0.2.1234-abcdef"), kSuccess;
}
int rocblas_set_stream(void* handle, void* stream) {
  ENTER(rocblas_set_stream);
  if (!handles().count(static_cast<Handle*>(handle))) return kInvalidHandle;
  return static_cast<Handle*>(handle)->stream = stream, kSuccess;
}
int rocblas_set_workspace(void* handle, void* workspace, size_t bytes) {
  ENTER(rocblas_set_workspace);
  if (!handles().count(static_cast<Handle*>(handle))) return kInvalidHandle;
  void* begin = nullptr;
  size_t size = 0;
  if (!allocation_of(workspace, &begin, &size) ||
      static_cast<char*>(workspace) + bytes > static_cast<char*>(begin) + size)
    return complain(kInvalidPointer, "a workspace outside of device memory");
  return static_cast<Handle*>(handle)->workspace = bytes, kSuccess;
}
int rocblas_gemm_strided_batched_ex(void* handle, int trans_a, int trans_b, int m, int n, int k,
                                    const void* alpha, const void* a, int a_type, int lda, int64_t stride_a,
                                    const void* b, int b_type, int ldb, int64_t stride_b, const void* beta,
                                    const void* c, int c_type, int ldc, int64_t stride_c, void* d, int d_type,
                                    int ldd, int64_t stride_d, int batch, int compute_type, int algorithm,
                                    int32_t solution, uint32_t flags) {
  ENTER(rocblas_gemm_strided_batched_ex);
  const auto* h = static_cast<Handle*>(handle);
  if (!handles().count(static_cast<Handle*>(handle))) return kInvalidHandle;
  for (int operation : {trans_a, trans_b})
    if (operation != kPlain && operation != kTransposed)
      return complain(kInvalidValue, "an unknown operation");
  if (algorithm != 0 || solution != 0 || flags != 0) return complain(kInvalidValue, "an unknown algorithm");
  if (!serves(type_of(a_type), type_of(b_type), type_of(d_type), type_of(compute_type)))
    return kNotImplemented;
  if (!h->workspace) return complain(kInvalidValue, "memory would be allocated during a capture");
  const auto matrix = [](const void* data, int type, int64_t rows, int64_t columns, int64_t ld,
                         int64_t stride, bool transposed) {
    return BlasMatrix{const_cast<void*>(data),
                      type_of(type),
                      transposed ? columns : rows,
                      transposed ? rows : columns,
                      ld,
                      stride,
                      transposed};
  };
  BlasCall call;
  call.a = matrix(a, a_type, m, k, lda, stride_a, trans_a == kTransposed);
  call.b = matrix(b, b_type, k, n, ldb, stride_b, trans_b == kTransposed);
  call.c = matrix(c, c_type, m, n, ldc, stride_c, false),
  call.d = matrix(d, d_type, m, n, ldd, stride_d, false);
  call.alpha = element(alpha, type_of(compute_type), 0), call.beta = element(beta, type_of(compute_type), 0);
  call.batch = batch;
  if (const std::string why = fault_of(call); !why.empty()) return complain(kInvalidValue, why);
  return enqueue(h->stream, 11e-6, [call] { return multiply(call), int(success); });
}

} // extern "C"
