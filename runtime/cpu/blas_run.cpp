// One call by OpenBLAS: the product on as many threads of the runtime as a kernel would have, each with a
// piece of D, and the epilogue behind it.
#include "runtime/core/floating_point.h"
#include "runtime/core/pool.h"
#include "runtime/cpu/blas.h"
#include "runtime/cpu/blas_epilogue.h"
#include "runtime/cpu/split.h"

#include <climits>
#include <cstring>
#include <initializer_list>

namespace deepgen::blas {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

constexpr int kRowMajor = 101, kNoTranspose = 111, kTranspose = 112;
constexpr int64_t kTile = 64; ///< what is split is whole tiles of D

int64_t number(const ArgumentValues& v, uint8_t slot) { return int64_t(v.slot[slot]); }

template <typename T>
T scalar(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

Gemm<float> gemm_of(const Library& l, float) { return l.sgemm; }
Gemm<double> gemm_of(const Library& l, double) { return l.dgemm; }

struct Call {
  Call(const deepgen_kernel& k, const ArgumentValues& v, bool c)
      : vendor(*k.vendor), values(v), reads_c(c), grid(k) {
    grid.tiles_m = (v.size[0] + kTile - 1) / kTile, grid.tiles_n = (v.size[1] + kTile - 1) / kTile;
    grid.tiles_b = v.size[3], grid.grain_m = grid.grain_n = 1, grid.cut = DEEPGEN_CUT_RULE;
  }
  const deepgen_vendor_call& vendor;
  const ArgumentValues& values;
  bool reads_c, wide = false; ///< of f64
  TileGrid grid;
  Split split;
  FloatingPoint floating_point;
};

template <typename T>
const T* matrix(const ArgumentValues& v, uint8_t slot, uint8_t stride, int64_t entry) {
  return reinterpret_cast<const T*>(v.slot[slot]) + entry * number(v, stride);
}

/// A BLAS adds to D, so that C has to be there.
template <typename T>
void copy_c(const ArgumentValues& v, const Block& b, T* d, int64_t ldd) {
  const T* c = matrix<T>(v, DEEPGEN_ARG_C, DEEPGEN_ARG_STRIDE_C, b.entry);
  const int64_t ldc = number(v, DEEPGEN_ARG_LDC);
  if (c == d && ldc == ldd) return;
  for (int64_t r = b.m0; r < b.m1; ++r)
    std::memcpy(d + r * ldd + b.n0, c + r * ldc + b.n0, size_t(b.n1 - b.n0) * sizeof(T));
}

template <typename T>
DEEPGEN_CALLS_MACHINE_CODE void run_block(const Call& call, const Block& b) {
  const ArgumentValues& v = call.values;
  const bool ta = call.vendor.flags & DEEPGEN_VENDOR_A_TRANSPOSED,
             tb = call.vendor.flags & DEEPGEN_VENDOR_B_TRANSPOSED;
  const int64_t lda = number(v, DEEPGEN_ARG_LDA), ldb = number(v, DEEPGEN_ARG_LDB),
                ldd = number(v, DEEPGEN_ARG_LDD);
  const T* a = matrix<T>(v, DEEPGEN_ARG_A, DEEPGEN_ARG_STRIDE_A, b.entry) + b.m0 * (ta ? 1 : lda);
  const T* w = matrix<T>(v, DEEPGEN_ARG_B, DEEPGEN_ARG_STRIDE_B, b.entry) + b.n0 * (tb ? ldb : 1);
  T* d = const_cast<T*>(matrix<T>(v, DEEPGEN_ARG_D, DEEPGEN_ARG_STRIDE_D, b.entry));
  if (call.reads_c) copy_c(v, b, d, ldd);
  gemm_of(current(), T())(
      kRowMajor, ta ? kTranspose : kNoTranspose, tb ? kTranspose : kNoTranspose, int(b.m1 - b.m0),
      int(b.n1 - b.n0), int(v.size[2]), scalar<T>(v.slot[DEEPGEN_ARG_ALPHA]), a, int(lda), w, int(ldb),
      call.reads_c ? scalar<T>(v.slot[DEEPGEN_ARG_BETA]) : T(0), d + b.m0 * ldd + b.n0, int(ldd));
  run_steps(call.vendor, v, b, d, ldd);
}

void run_range(const Call& call, const TileRange& range) {
  const auto end = [](int64_t tiles, int64_t size) { return tiles * kTile < size ? tiles * kTile : size; };
  for (int64_t entry = range.b0; entry < range.b1; ++entry) {
    const Block block{range.m0 * kTile, end(range.m1, call.values.size[0]), range.n0 * kTile,
                      end(range.n1, call.values.size[1]), entry};
    call.wide ? run_block<double>(call, block) : run_block<float>(call, block);
  }
}

void run_task(void* context, int index) {
  Call& call = *static_cast<Call*>(context);
  FloatingPoint::Scope scope(call.floating_point);
  run_range(call, task_range(call.grid, call.split, index));
}

/// A BLAS counts in ints.
bool fits(const ArgumentValues& v) {
  for (const int64_t x : {v.size[0], v.size[1], v.size[2], number(v, DEEPGEN_ARG_LDA),
                          number(v, DEEPGEN_ARG_LDB), number(v, DEEPGEN_ARG_LDD)})
    if (x > INT_MAX) return false;
  return v.size[2] > 0;
}

/// The product is written ahead of the steps: D must not be what one of them reads.
bool keeps_operands(const deepgen_vendor_call& call, const ArgumentValues& v) {
  for (uint32_t i = 0; i < call.step_count; ++i)
    if (const void* data = operand_of(RowStep(call.steps[i]), v).data)
      if (uintptr_t(data) == v.slot[DEEPGEN_ARG_D]) return false;
  return true;
}

} // namespace

bool run(const deepgen_function& f, const deepgen_kernel& k, const ArgumentValues& values, bool reads_c,
         int threads) {
  if (state_of(*k.vendor) != Fallback::runs || !fits(values) || !keeps_operands(*k.vendor, values))
    return false;
  Call call(k, values, reads_c);
  call.wide = find_operand(f, DEEPGEN_ARG_A)->type == DEEPGEN_F64;
  if (threads > 1) call.split = split_tiles(call.grid, threads);
  if (call.split.count() > 1 && pool::run(call.split.count(), run_task, &call)) {
    call.floating_point.take_flags();
    return true;
  }
  run_range(call, {0, call.grid.tiles_m, 0, call.grid.tiles_n, 0, call.grid.tiles_b});
  return true;
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::blas
