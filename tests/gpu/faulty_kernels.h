// Hand-written kernels with known faults, for tests of what notices them.
#pragma once

#include "base/kernel/kernel.h"

namespace deepgen {

/// What is wrong with a kernel, as PTX at one of its places; empty: nothing.
struct Fault {
  std::string start;      ///< before anything else
  std::string product;    ///< after the products are summed in %sum; %row, %column, %depth (K - 1) are set
  std::string store;      ///< instead of the store of %x to [%address]
  std::string last = "0"; ///< products left out
};

/// One thread an element, f32, layout nn, alpha and beta: PTX that every GPU since sm_80 runs.
inline KernelFile ptx_kernel(int64_t m, int64_t n, int64_t k, const Fault& fault = {}) {
  Kernel kernel;
  kernel.role = "main";
  kernel.problem.gemm().m = m, kernel.problem.gemm().n = n, kernel.problem.gemm().k = k;
  complete(kernel.problem.gemm());
  kernel.args = {"a", "b", "c", "d", "lda", "ldb", "ldc", "ldd", "alpha", "beta", "workspace"};
  kernel.target = "sm_80";
  kernel.align_a = kernel.align_b = kernel.align_d = 4;
  Launch launch;
  launch.entry = "deepgen_kernel", launch.block[0] = 128, launch.grid[0] = (m * n + 127) / 128;
  kernel.launches = {launch};
  const auto number = [](int64_t x) { return std::to_string(x); };
  kernel.ptx = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry deepgen_kernel(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd, .param .u64 plda,
    .param .u64 pldb, .param .u64 pldc, .param .u64 pldd, .param .f32 palpha, .param .f32 pbeta,
    .param .u64 pworkspace) {
  .reg .u64 %workspace, %a, %b, %c, %d, %lda, %ldb, %ldc, %ldd, %address, %other, %row, %column, %index, %depth;
  .reg .u32 %t, %u, %v;
  .reg .f32 %sum, %x, %y, %alpha, %beta;
  .reg .pred %p;
  ld.param.u64 %a, [pa];
  ld.param.u64 %b, [pb];
  ld.param.u64 %c, [pc];
  ld.param.u64 %d, [pd];
  ld.param.u64 %lda, [plda];
  ld.param.u64 %ldb, [pldb];
  ld.param.u64 %ldc, [pldc];
  ld.param.u64 %ldd, [pldd];
  ld.param.f32 %alpha, [palpha];
  ld.param.f32 %beta, [pbeta];
  ld.param.u64 %workspace, [pworkspace];
  )" + fault.start +
               R"(
  mov.u32 %t, %ctaid.x;
  mov.u32 %u, %ntid.x;
  mov.u32 %v, %tid.x;
  mad.lo.u32 %t, %t, %u, %v;
  cvt.u64.u32 %index, %t;
  setp.ge.u64 %p, %index, )" +
               number(m * n) + R"(;
  @%p bra done;
  div.u64 %row, %index, )" +
               number(n) + R"(;
  rem.u64 %column, %index, )" +
               number(n) + R"(;
  mul.lo.u64 %address, %row, %lda;
  shl.b64 %address, %address, 2;
  add.u64 %address, %address, %a;
  shl.b64 %other, %column, 2;
  add.u64 %other, %other, %b;
  shl.b64 %ldb, %ldb, 2;
  mov.f32 %sum, 0f00000000;
  mov.u64 %depth, )" +
               number(k) + R"(;
  sub.u64 %depth, %depth, )" +
               fault.last + R"(;
loop:
  ld.global.f32 %x, [%address];
  ld.global.f32 %y, [%other];
  fma.rn.f32 %sum, %x, %y, %sum;
  add.u64 %address, %address, 4;
  add.u64 %other, %other, %ldb;
  sub.u64 %depth, %depth, 1;
  setp.ne.u64 %p, %depth, 0;
  @%p bra loop;
  )" + fault.product +
               R"(
  mul.f32 %x, %sum, %alpha;
  setp.eq.f32 %p, %beta, 0f00000000;
  @%p bra store;
  mul.lo.u64 %other, %row, %ldc;
  add.u64 %other, %other, %column;
  shl.b64 %other, %other, 2;
  add.u64 %other, %other, %c;
  ld.global.f32 %y, [%other];
  fma.rn.f32 %x, %beta, %y, %x;
store:
  mul.lo.u64 %address, %row, %ldd;
  add.u64 %address, %address, %column;
  shl.b64 %address, %address, 2;
  add.u64 %address, %address, %d;
  )" + (fault.store.empty() ? "st.global.f32 [%address], %x;" : fault.store) +
               R"(
done:
  ret;
}
)";
  KernelFile file;
  file.problem = kernel.problem;
  file.arch = "sm_80";
  file.choice.template_name = "by_hand";
  file.kernels = {kernel};
  return file;
}

} // namespace deepgen
