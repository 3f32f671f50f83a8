// Small kernels in PTX for tests of launches on a GPU.
#pragma once

namespace deepgen::gpu_tests {

/// d[i] = alpha * a[i], one block a row: (a, d, lda, ldd, alpha). Any GPU since sm_80.
inline constexpr char scale_ptx[] = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry deepgen_kernel(.param .u64 pa, .param .u64 pd, .param .u64 plda, .param .u64 pldd, .param .f32 palpha) {
  .reg .u64 %a, %d, %lda, %ldd, %row, %column, %i;
  .reg .u32 %r;
  .reg .f32 %x, %alpha;
  ld.param.u64 %a, [pa];
  ld.param.u64 %d, [pd];
  ld.param.u64 %lda, [plda];
  ld.param.u64 %ldd, [pldd];
  ld.param.f32 %alpha, [palpha];
  mov.u32 %r, %ctaid.x;
  cvt.u64.u32 %row, %r;
  mov.u32 %r, %tid.x;
  cvt.u64.u32 %column, %r;
  mad.lo.u64 %i, %row, %lda, %column;
  shl.b64 %i, %i, 2;
  add.u64 %a, %a, %i;
  ld.global.f32 %x, [%a];
  mul.f32 %x, %x, %alpha;
  mad.lo.u64 %i, %row, %ldd, %column;
  shl.b64 %i, %i, 2;
  add.u64 %d, %d, %i;
  st.global.f32 [%d], %x;
  ret;
}
)";

/// d[0] = blocks of the grid: (d). With dynamic shared memory.
inline constexpr char grid_ptx[] = R"(
.version 7.0
.target sm_80
.address_size 64
.extern .shared .align 1024 .b8 shared[];
.visible .entry deepgen_kernel(.param .u64 pd) {
  .reg .u64 %d;
  .reg .u32 %r, %s;
  .reg .f32 %x;
  ld.param.u64 %d, [pd];
  mov.u32 %s, shared;
  mov.u32 %r, %nctaid.x;
  st.shared.u32 [%s], %r;
  ld.shared.u32 %r, [%s];
  cvt.rn.f32.u32 %x, %r;
  st.global.f32 [%d], %x;
  ret;
}
)";

/// d[block] = rank of the block in its cluster: (d).
inline constexpr char cluster_ptx[] = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry deepgen_kernel(.param .u64 pd) {
  .reg .u64 %d, %i;
  .reg .u32 %r;
  .reg .f32 %x;
  ld.param.u64 %d, [pd];
  mov.u32 %r, %ctaid.x;
  mul.wide.u32 %i, %r, 4;
  add.u64 %d, %d, %i;
  mov.u32 %r, %cluster_ctarank;
  cvt.rn.f32.u32 %x, %r;
  st.global.f32 [%d], %x;
  ret;
}
)";

/// f32; boxes of A of 32 columns and 8 rows, swizzled by 128 bytes, from its tensor map of rank 3. Block (x,
/// y, z) of 256 threads and clusters of two along x: d[z][8 y + i][32 x + j] = a[z][8 y + i][32 x + j] + 1000
/// rank in the cluster; the dependent second entry then adds 0.5, in a grid of as many blocks: (map_a, d,
/// ldd, stride_d).
inline constexpr char tensor_map_ptx[] = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry deepgen_kernel(.param .align 64 .b8 map[128], .param .u64 pd, .param .u64 pldd, .param .u64 pstride) {
  .shared .align 1024 .b8 tile[1024];
  .shared .align 8 .b64 barrier;
  .reg .u64 %map, %d, %ldd, %stride, %row, %column, %batch, %state;
  .reg .u32 %t, %x, %y, %z, %i, %j, %address, %bar, %r;
  .reg .f32 %value, %shift;
  .reg .pred %p;
  griddepcontrol.launch_dependents;
  mov.u32 %t, %tid.x;
  mov.u32 %x, %ctaid.x;
  mov.u32 %y, %ctaid.y;
  mov.u32 %z, %ctaid.z;
  shl.b32 %x, %x, 5;
  shl.b32 %y, %y, 3;
  mov.u32 %address, tile;
  mov.u32 %bar, barrier;
  setp.ne.u32 %p, %t, 0;
  @%p bra ready;
  mov.b64 %map, map;
  cvta.param.u64 %map, %map;
  mbarrier.init.shared::cta.b64 [%bar], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 %state, [%bar], 1024;
  cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%address], [%map, {%x, %y, %z}], [%bar];
ready:
  bar.sync 0;
wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], 0;
  @!%p bra wait;
  shr.u32 %i, %t, 5;
  and.b32 %j, %t, 31;
  shr.u32 %r, %j, 2;
  xor.b32 %r, %r, %i;
  shl.b32 %r, %r, 4;
  add.u32 %address, %address, %r;
  and.b32 %r, %j, 3;
  shl.b32 %r, %r, 2;
  add.u32 %address, %address, %r;
  shl.b32 %r, %i, 7;
  add.u32 %address, %address, %r;
  ld.shared.f32 %value, [%address];
  mov.u32 %r, %cluster_ctarank;
  cvt.rn.f32.u32 %shift, %r;
  fma.rn.f32 %value, %shift, 0f447A0000, %value;
  ld.param.u64 %d, [pd];
  ld.param.u64 %ldd, [pldd];
  ld.param.u64 %stride, [pstride];
  add.u32 %i, %i, %y;
  add.u32 %j, %j, %x;
  cvt.u64.u32 %row, %i;
  cvt.u64.u32 %column, %j;
  cvt.u64.u32 %batch, %z;
  mad.lo.u64 %column, %row, %ldd, %column;
  mad.lo.u64 %column, %batch, %stride, %column;
  shl.b64 %column, %column, 2;
  add.u64 %d, %d, %column;
  st.global.f32 [%d], %value;
  barrier.cluster.arrive;
  barrier.cluster.wait;
  ret;
}
.visible .entry deepgen_reduce(.param .align 64 .b8 map[128], .param .u64 pd, .param .u64 pldd, .param .u64 pstride) {
  .reg .u64 %d, %ldd, %stride, %row, %column, %batch;
  .reg .u32 %t, %r;
  .reg .f32 %value;
  griddepcontrol.wait;
  mov.u32 %t, %tid.x;
  ld.param.u64 %d, [pd];
  ld.param.u64 %ldd, [pldd];
  ld.param.u64 %stride, [pstride];
  mov.u32 %r, %ctaid.y;
  shl.b32 %r, %r, 3;
  cvt.u64.u32 %row, %r;
  shr.u32 %r, %t, 5;
  cvt.u64.u32 %column, %r;
  add.u64 %row, %row, %column;
  mov.u32 %r, %ctaid.x;
  shl.b32 %r, %r, 5;
  and.b32 %t, %t, 31;
  add.u32 %r, %r, %t;
  cvt.u64.u32 %column, %r;
  mov.u32 %r, %ctaid.z;
  cvt.u64.u32 %batch, %r;
  mad.lo.u64 %column, %row, %ldd, %column;
  mad.lo.u64 %column, %batch, %stride, %column;
  shl.b64 %column, %column, 2;
  add.u64 %d, %d, %column;
  ld.global.f32 %value, [%d];
  add.f32 %value, %value, 0f3F000000;
  st.global.f32 [%d], %value;
  ret;
}
)";

} // namespace deepgen::gpu_tests
