#include "peers.h"

#include "../../measure/values/clones.h"
#include "../../runtime/cpu/activation.h"

#include <cstdio>
#include <dlfcn.h>
#include <dnnl.hpp>
#ifndef WITHOUT_LIBXSMM
#include <libxsmm.h>
#endif
#include <memory>
#include <unordered_map>

namespace {

using Cblas = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float,
                       float*, int);

/// What a careful user of a BLAS writes behind the call: one pass, in vectors of the CPU's own width.
DEEPGEN_CLONES void epilogue_row(float* __restrict d, const float* __restrict bias, int64_t n, bool gelu) {
  if (gelu)
    for (int64_t j = 0; j < n; ++j) d[j] = deepgen::activation::gelu(d[j] + bias[j]);
  else
    for (int64_t j = 0; j < n; ++j) d[j] += bias[j];
}

void epilogue_loop(const Row& row, const Operands& x) {
  if (!row.bias) return;
  for (int64_t i = 0; i < row.m * row.batch; ++i) epilogue_row(x.d + i * row.n, x.bias, row.n, row.gelu);
}

/// A private copy of the library, so that two BLAS do not resolve each other's symbols.
void* open_library(const std::vector<const char*>& names) {
  for (const char* name : names)
    if (void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND)) return handle;
  std::fprintf(stderr, "not installed, left out: %s\n", names.front());
  return nullptr;
}

Cblas openblas(int threads) {
  static void* handle = open_library({"libopenblas.so.0", "libopenblas.so"});
  if (!handle) return nullptr;
  if (auto set = reinterpret_cast<void (*)(int)>(dlsym(handle, "openblas_set_num_threads"))) set(threads);
  return reinterpret_cast<Cblas>(dlsym(handle, "cblas_sgemm"));
}

Cblas blis() {
  static void* handle = open_library({"libblis.so.4", "libblis.so"});
  return handle ? reinterpret_cast<Cblas>(dlsym(handle, "cblas_sgemm")) : nullptr;
}

void add_cblas(std::vector<Arm>& arms, const char* name, Cblas gemm, const Row& row, const Operands& x) {
  if (!gemm) return;
  arms.push_back({name, true, [=] {
                    const int64_t m = row.m, n = row.n, k = row.k;
                    for (int64_t e = 0; e < row.batch; ++e)
                      gemm(101, row.a_transposed ? 112 : 111, row.b_transposed ? 112 : 111, int(m), int(n),
                           int(k), 1.0f, x.a + e * m * k, int(row.a_transposed ? m : k), x.b + e * k * n,
                           int(row.b_transposed ? k : n), 0.0f, x.d + e * m * n, int(n));
                    epilogue_loop(row, x);
                  }});
}

dnnl::memory::desc matrix(const Row& row, int64_t rows, int64_t columns, bool transposed) {
  using dnnl::memory;
  memory::dims dims = row.batch > 1 ? memory::dims{row.batch, rows, columns} : memory::dims{rows, columns};
  memory::format_tag tag = row.batch > 1 ? (transposed ? memory::format_tag::acb : memory::format_tag::abc)
                                         : (transposed ? memory::format_tag::ba : memory::format_tag::ab);
  return {dims, memory::data_type::f32, tag};
}

/// matmul with bias and gelu_erf fused, as oneDNN offers them; `packed`: B in the layout that oneDNN prefers.
void add_onednn(std::vector<Arm>& arms, const Row& row, const Operands& x, bool packed) {
  using namespace dnnl;
  static engine cpu(engine::kind::cpu, 0);
  static stream queue(cpu);
  memory::desc a = matrix(row, row.m, row.k, row.a_transposed),
               b = matrix(row, row.k, row.n, row.b_transposed), d = matrix(row, row.m, row.n, false);
  memory::desc wanted = b;
  if (packed) wanted = memory::desc(b.dims(), memory::data_type::f32, memory::format_tag::any);
  memory::desc bias({1, row.n}, memory::data_type::f32, memory::format_tag::ab);
  if (row.batch > 1) bias = memory::desc({1, 1, row.n}, memory::data_type::f32, memory::format_tag::abc);
  primitive_attr attributes;
  post_ops posts;
  if (row.gelu) posts.append_eltwise(1.0f, algorithm::eltwise_gelu_erf, 0, 0);
  attributes.set_post_ops(posts);
  auto description = row.bias ? matmul::primitive_desc(matmul::desc(a, wanted, bias, d), attributes, cpu)
                              : matmul::primitive_desc(matmul::desc(a, wanted, d), attributes, cpu);
  matmul primitive(description);
  memory b_memory(b, cpu, const_cast<float*>(x.b));
  if (packed) {
    if (description.weights_desc() == b) return; // nothing to repack
    memory repacked(description.weights_desc(), cpu);
    reorder(b_memory, repacked).execute(queue, b_memory, repacked);
    queue.wait();
    b_memory = repacked;
  }
  std::unordered_map<int, memory> arguments = {{DNNL_ARG_SRC, memory(a, cpu, const_cast<float*>(x.a))},
                                               {DNNL_ARG_WEIGHTS, b_memory},
                                               {DNNL_ARG_DST, memory(d, cpu, x.d)}};
  if (row.bias) arguments.insert({DNNL_ARG_BIAS, memory(bias, cpu, const_cast<float*>(x.bias))});
  const bool counted = !packed || BENCHMARK_PREPACKED;
  arms.push_back({packed ? "oneDNN matmul, B prepacked" : "oneDNN matmul", counted, [=]() mutable {
                    primitive.execute(queue, arguments);
                    queue.wait();
                  }});
}

void add_dnnl_sgemm(std::vector<Arm>& arms, const Row& row, const Operands& x) {
  arms.push_back({"oneDNN sgemm", true, [=] {
                    const int64_t m = row.m, n = row.n, k = row.k;
                    for (int64_t e = 0; e < row.batch; ++e)
                      dnnl_sgemm(row.a_transposed ? 'T' : 'N', row.b_transposed ? 'T' : 'N', m, n, k, 1.0f,
                                 x.a + e * m * k, row.a_transposed ? m : k, x.b + e * k * n,
                                 row.b_transposed ? k : n, 0.0f, x.d + e * m * n, n);
                    epilogue_loop(row, x);
                  }});
}

#ifndef WITHOUT_LIBXSMM
/// libxsmm generates code for small products, column-major: D^T = B^T A^T. It has no kernel for a transposed
/// operand.
void add_libxsmm(std::vector<Arm>& arms, const Row& row, const Operands& x) {
  if (row.a_transposed || row.b_transposed ||
      double(row.m) * double(row.n) * double(row.k) > 128.0 * 128 * 128)
    return;
  int lda = int(row.n), ldb = int(row.k), ldc = int(row.n), flags = LIBXSMM_GEMM_FLAG_NONE, prefetch = 0;
  float alpha = 1, beta = 0;
  auto kernel = libxsmm_smmdispatch(int(row.n), int(row.m), int(row.k), &lda, &ldb, &ldc, &alpha, &beta,
                                    &flags, &prefetch);
  if (!kernel) return;
  arms.push_back({"libxsmm", true, [=] {
                    for (int64_t e = 0; e < row.batch; ++e)
                      kernel(x.b + e * row.k * row.n, x.a + e * row.m * row.k, x.d + e * row.m * row.n);
                    epilogue_loop(row, x);
                  }});
}
#endif

} // namespace

#ifndef WITHOUT_LIBXSMM
std::vector<Arm> peer_arms(const Row& row, const Operands& x) {
  std::vector<Arm> arms;
  add_cblas(arms, "OpenBLAS", openblas(1), row, x);
  add_cblas(arms, "BLIS", blis(), row, x);
  add_onednn(arms, row, x, false);
  add_onednn(arms, row, x, true);
  add_dnnl_sgemm(arms, row, x);
  add_libxsmm(arms, row, x);
  return arms;
}
#endif

std::vector<Arm> threaded_peer_arms(const Row& row, const Operands& x, int threads) {
  std::vector<Arm> arms;
  add_cblas(arms, "OpenBLAS", openblas(threads), row, x);
  // Debian's oneDNN shares out its work by OpenMP.
  if (auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"))) {
    set(threads);
    add_onednn(arms, row, x, false);
    add_dnnl_sgemm(arms, row, x);
  } else {
    std::fprintf(stderr, "oneDNN has no OpenMP here, so that its threads cannot be set: left out\n");
  }
  return arms;
}
