// simt: matrix products on the ordinary multiply-add units. It serves every type, layout, epilogue, size and
// alignment, and is what f32 and f64 are computed with where their full precision is asked for.
#pragma once

#include "templates/core/operator_template.h"

namespace deepgen {

/// One operand's tile: how it goes from global to shared memory, where it is [k][x] with x along M (of A) or
/// N (of B). A thread moves it in pieces: `lines` accesses to global memory, `unit` elements of shared memory
/// along k or x, as they are stored.
struct SimtSide {
  Type type = Type::f32;
  bool k_major = false; ///< consecutive in memory along k
  bool ragged = false;  ///< tiles begin anywhere along x, as groups do, or end anywhere, as ranges do
  int64_t extent = 0;   ///< of the tile along x
  int64_t size = 0;     ///< of the matrix along x, at most
  int64_t bytes = 4;    ///< of an element in global memory
  int64_t width = 1;    ///< elements of global memory in one access
  int64_t lines = 1;    ///< more than one: what lies along x, or is narrow, is put together in registers
  int64_t unit = 1;
  int64_t row = 0;        ///< elements of shared memory from one k to the next
  int64_t offset = 0;     ///< bytes from the start of a stage
  int64_t pieces = 0;     ///< of one tile by all threads
  int64_t per_thread = 0; ///< of them
  /// Neighbouring threads along k where that is consecutive: 8 read whole sectors of a row, and with the
  /// padding of 16 bytes they write different banks.
  int64_t k_lanes = 1;
  int64_t rows = 1; ///< of memory among a thread's pieces, where k is consecutive

  /// Whether the tile may end behind the matrix: what is outside along x is read from a place inside, and
  /// what comes of it is not stored.
  bool clamped() const { return ragged || size % extent != 0; }
};

/// A config with everything that follows from it for one problem.
struct SimtTiling {
  SimtTiling(const Gemm&, const Config&, const std::string& arch);

  int64_t bm, bn, bk, tm, tn, stages, wide, blocks, splits, group; ///< the parameters; see Simt::parameters()
  /// More than one: an instruction adds up the products of so many elements along k (dp4a; dot4 and dot2 of
  /// AMD). An element of shared memory holds these, and what is called k of a tile counts them.
  int64_t dot = 1;
  bool as_is = false;     ///< elements reach shared memory as they are; else they are converted in registers
  bool async = false;     ///< and by cp.async; else through registers
  bool copies;            ///< the arch has asynchronous copies to shared memory
  int64_t depth = 1;      ///< K of the problem; of a range, at most
  bool any_depth = false; ///< a call says K
  int64_t k = 1;          ///< the same in elements of shared memory
  int64_t element = 4;    ///< bytes in shared memory
  int64_t lanes_m = 4, lanes_n = 8; ///< of a warp
  int64_t warps_m = 1, warps_n = 1; ///< of a block; 0: the tile does not divide so
  int64_t threads = 0;
  int64_t tiles_m = 1, tiles_n = 1, tiles_k = 1, split_tiles = 1;
  int64_t weights =
      1; ///< matrices in B: with a gate two, and half of a tile's columns are of one, half of the other
  SimtSide a, b;       ///< b: of one weight
  int64_t width_d = 1; ///< elements of D in one access

  int64_t weight_bytes() const { return bk * b.row * element; } ///< of one weight's tile in shared memory
  int64_t stage_bytes() const { return b.offset + weights * weight_bytes(); }
  int64_t shared_bytes() const { return stages * stage_bytes(); }
  int64_t registers() const; ///< estimate, for one thread
  /// Consecutive rows (columns) that a thread holds: what it reads from shared memory at once.
  int64_t chunk_m() const { return std::min(tm, 16 / element); }
  int64_t chunk_n() const { return std::min(tn / weights, 16 / element); }
  int64_t columns() const { return bn / weights; }        ///< of D in a block's tile
  int64_t thread_columns() const { return tn / weights; } ///< of D that a thread computes
};

class Simt : public GemmTemplate {
public:
  std::string name() const override { return "simt"; }
  int64_t revision() const override { return 2; } // 2: fewer registers where tiles are ragged
  bool serves_range(Size) const override { return true; }
  std::string why_not(const Gemm&, const std::string& arch) const override;
  std::vector<Parameter> parameters(const Gemm&, const Device&) const override;
  std::string why_illegal(const Gemm&, const Device&, const Config&) const override;
  bool dead_end(const Gemm&, const Device&, const Config&, size_t assigned) const override;
  double cost(const Gemm&, const Device&, const Config&) const override;
  std::vector<Choice> fallbacks(const Gemm&, const std::string& arch, const Config&) const override;
  std::string sum_order(const Gemm&, const std::string& arch, const Config&) const override;
  int64_t workspace(const Gemm&, const Config&) const override;
  Gemm awkward(const Gemm&, const Config&) const override;
  Kernel emit(mlir::ModuleOp, const Gemm&, const std::string& arch, const Config&) const override;
};

} // namespace deepgen
