// SimtLoader: one operand's way from global to shared memory.
#pragma once

#include "templates/gpu/simt/simt.h"
#include "templates/ir/gpu_ir.h"

namespace deepgen {

/// The tiles of one operand that a block needs.
class SimtLoader {
public:
  /// `operand`: of the batch entry; `pitch`: bytes from one stored row to the next, i64; `first`: the block's
  /// first x; `size`: of the matrix along x.
  SimtLoader(GpuIr&, const SimtTiling&, const SimtSide&, Value operand, Value pitch, Value first,
             const SizeValue& size);

  /// Where the thread starts to read the tile at `k` (of the problem), and the same for the next tile.
  Value start(Value k);
  Value next(Value pointer);

  /// Starts asynchronous copies, numbers [from, to) of the thread's, into the stage at `slot` (bytes, i32).
  /// Elements at `remaining` (i32) and beyond of the problem's k, counted from the tile's first, become zero.
  void copy(int64_t from, int64_t to, Value pointer, Value slot, Value remaining);
  /// The same in two steps, with a conversion between.
  Values load(Value pointer, Value remaining);
  void store(const Values&, Value slot, Value remaining);

private:
  /// Where piece i of a thread lies in the tile: a part that depends on the thread and a constant one.
  struct Place {
    int64_t k, x;
  };
  Place place(int64_t i) const;
  int64_t field_of_k(int64_t piece) const;
  int64_t field_of_x(int64_t piece) const;
  Value row_address(int64_t rows, Value pointer);
  Value global_address(int64_t i, int64_t line, Value pointer);
  Value shared_address(int64_t i, Value slot);
  Value valid(int64_t i, int64_t line, Value remaining);            ///< i1
  Value staged(mlir::ValueRange lines, int64_t i, Value remaining); ///< of a piece, as shared memory holds it
  int64_t together() const { return side_.k_major ? 1 : side_.width; } ///< elements of one access along x
  Value inside(int64_t x); ///< i1: whether the access so far from the thread's first x is

  GpuIr& ir;
  const SimtTiling& t_;
  const SimtSide side_;
  // A piece's number has bit fields for its place: the fastest along what is consecutive in memory.
  int64_t k_units_, x_units_;
  Value operand_, pitch_;
  const SizeValue size_;
  Value thread_, thread_k_, thread_x_;
  Value x_, from_x_;       ///< of the problem, where the thread's first piece lies, and where it is read
  Value walk_from_, walk_; ///< where the last address was, in stored rows from the tile's first
  int64_t walked_ = 0;
};

} // namespace deepgen
