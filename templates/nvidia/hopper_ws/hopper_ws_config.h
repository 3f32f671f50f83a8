// The parameters of hopper_ws by number, and what both its tiling and its rules ask of a problem. Internal.
#pragma once

#include "templates/core/sizes.h"
#include "templates/gpu/gpu_split_k.h"
#include "templates/nvidia/hopper_ws/hopper_ws.h"

namespace deepgen::hopper {

enum Index {
  kBm,
  kBn,
  kSlices,
  kStages,
  kConsumers,
  kPingpong,
  kSwap,
  kPromote,
  kClusterM,
  kClusterN,
  kClusterK,
  kSplits,
  kStreamK,
  kGroup,
  kPdl,
  kAlignA,
  kAlignB,
  kAlignD
};
inline constexpr std::string_view kNames[] = {"bm",        "bn",      "slices",   "stages",    "consumers",
                                              "pingpong",  "swap",    "promote",  "cluster_m", "cluster_n",
                                              "cluster_k", "splits",  "stream_k", "group",     "pdl",
                                              "align_a",   "align_b", "align_d"};

inline constexpr int64_t kWarpgroup = 128;  ///< threads
inline constexpr int64_t kSliceBytes = 128; ///< of K in one slice of a stage
inline constexpr int64_t kAlignAB = 16;     ///< that TMA wants of bases, leading dimensions and strides
inline constexpr int64_t kMostCopied = int64_t(1) << 34; ///< bytes, in units of 16 that 32 bits count

/// Rows of A for which the transpose may be computed: wgmma's N can end closer to M than its M, of 64 rows,
/// does.
inline constexpr int64_t kMostSwapped = 1024;
inline constexpr int64_t kAnyWidth = 128; ///< rows of A for which that is tried with any width of tiles

[[gnu::always_inline]] inline int64_t at(const Config& config, Index i) {
  return value_at(config, size_t(i), kNames[i]);
}

/// The least width of as many tiles along M as those of `width` are.
inline int64_t tight_width(const Gemm& p, int64_t width) {
  const int64_t least = ceil_div(p.m, ceil_div(p.m, width));
  return round_up(least, p.a == Type::i8 && least > 32 ? 16 : 8);
}

/// Tensor cores transpose 16-bit operands only: others are packed along K first.
inline bool a_k_major(const Gemm& p) { return !p.a_transposed() || size_of(p.a) != 2; }
inline bool b_k_major(const Gemm& p) { return p.b_transposed() || size_of(p.b) != 2; }
/// TMA wants rows that are multiples of 16 bytes apart.
inline GpuPack::Side side(int64_t align, bool k_major, bool stored_k_major) {
  return {align < kAlignAB || k_major != stored_k_major, k_major, align};
}
inline int64_t dense_a(const Gemm& p) {
  return dense_alignment(unit_of(p, p.a_transposed() ? Size::m : Size::k), p.a);
}
inline int64_t dense_b(const Gemm& p) {
  const int64_t unit = unit_of(p, p.b_transposed() ? Size::k : Size::n);
  return dense_alignment(p.gate && !p.b_transposed() ? 2 * unit : unit, p.b);
}
inline int64_t dense_d(const Gemm& p) { return dense_alignment(unit_of(p, Size::n), p.d); }

} // namespace deepgen::hopper
