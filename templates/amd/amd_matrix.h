// mfma and wmma: GEMM on the matrix units of AMD's CDNA and RDNA GPUs, the same kernels around other
// instructions. Tiles of A and B go through registers into LDS, where every row is consecutive along K
// whatever the layout; waves read them by 16 bytes a lane without bank conflicts, one step ahead of the
// matrix instructions, while the next tile is on its way from memory.
//
// Buffer loads (`buffer`) have offsets of 32 bits from the block's first row or column, and a range that is
// checked in the place of clamping rows and columns. Kernel::most_pitch says how far apart rows may be for
// that; a call with a larger leading dimension takes the fallback, which has pointers.
#pragma once

#include "base/kernel/amd.h"
#include "templates/amd/amd_matrix_shape.h"
#include "templates/amd/lds_swizzle.h"
#include "templates/core/operator_template.h"

namespace deepgen {

struct MatrixTiling;

/// One operand's tile on its way: elements of global memory in pieces, one for each thread and turn.
struct MatrixSide {
  Type type = Type::f16;            ///< in memory
  bool k_contiguous = false;        ///< rows as stored go along K
  int64_t extent = 0;               ///< rows of the tile in LDS
  int64_t size = 0, depth = 0;      ///< of the matrix: M or N, and K, at most
  int64_t bytes = 2;                ///< of an element in memory
  int64_t k = 8, x = 1;             ///< elements of a piece
  int64_t along_k = 1, along_x = 1; ///< pieces of a tile
  int64_t per_thread = 1;
  int64_t offset = 0; ///< bytes from the start of a stage
  int64_t pieces() const { return along_k * along_x; }
  int64_t registers() const;                    ///< that hold what one thread has in flight
  int64_t lds_bytes(const MatrixTiling&) const; ///< of a piece, along K
  /// For buffer loads: what base and pitch have to be aligned to, and the largest pitch whose offsets are
  /// below 2^31, both in bytes. Chips differ in what they make of a load of 4 bytes or more that is aligned
  /// to less than 4.
  int64_t align() const;
  int64_t most_pitch(const MatrixTiling&) const;
  int64_t dense_pitch() const { return (k_contiguous ? depth : size) * bytes; }
};

/// A config with everything that follows from it for one problem.
struct MatrixTiling {
  MatrixTiling(const Gemm&, const std::string& arch, const Config&);

  int64_t size, bm, bn, bk_bytes, waves_m, waves_n, direct, buffer, stages, pingpong, blocks, splits, group,
      xcds, wide; ///< the parameters
  MatrixShape shape;
  int64_t threads, bk, wm, wn;
  int64_t tiles_m, tiles_n, tiles_k, split_tiles;
  int64_t steps;        ///< of K in a tile
  bool paired;          ///< see MatrixShape::row_of_column()
  int64_t banks;        ///< bytes that LDS serves at a time
  int64_t direct_bytes; ///< of a lane, in one copy to LDS
  MatrixSide a, b;
  int64_t width_d; ///< elements of D in one access

  bool divides() const {
    return wm * waves_m == bm && wn * waves_n == bn && wm % size == 0 && wn % size == 0;
  }
  int64_t stage_bytes() const { return (bm + bn) * bk_bytes; }
  /// Bytes that an operand's base and pitch have to be multiples of.
  int64_t align(const MatrixSide& s) const {
    return std::max({s.bytes, direct ? direct_bytes : 1, buffer ? s.align() : 1});
  }
  /// Tiles between the one that is multiplied and the one that waits in registers.
  int64_t ahead() const { return stages == 3 ? 2 : 1; }
  int64_t swizzle(int64_t row) const { return LdsSwizzle{bk_bytes, banks}.of(row); }
  Value swizzle(GpuIr& ir, Value row) const { return LdsSwizzle{bk_bytes, banks}.of(ir, row); }
  int64_t shared_bytes() const { return stages * stage_bytes(); }
  int64_t accumulators() const { return wm * wn / shape.wave * (shape.doubles ? 2 : 1); } ///< registers
  int64_t registers() const;          ///< estimate, for one lane
  int64_t registers_indirect() const; ///< of the same tile through registers, by pointers
  int64_t most_pitch() const {
    return std::min(a.most_pitch(*this), b.most_pitch(*this));
  } ///< with buffer loads
  int64_t loads() const {
    return a.per_thread + b.per_thread;
  } ///< of a tile, where they are direct: by one wave
  /// Of multiplying a tile where waves take turns: a turn needs the fragments of two steps, or the only one.
  int64_t turns() const { return std::max<int64_t>(1, steps / 2); }
};

class AmdMatrix : public GemmTemplate {
public:
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

private:
  virtual bool has_instructions(const AmdArch&) const = 0;
};

class Mfma : public AmdMatrix {
public:
  std::string name() const override { return "mfma"; }
  int64_t revision() const override { return 3; }

private:
  bool has_instructions(const AmdArch& arch) const override { return arch.mfma; }
};

class Wmma : public AmdMatrix {
public:
  std::string name() const override { return "wmma"; }
  int64_t revision() const override { return 3; }

private:
  bool has_instructions(const AmdArch& arch) const override { return arch.wave == 32; }
};

} // namespace deepgen
