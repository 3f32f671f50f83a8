// Tiles of A and B in shared memory, and the fragments that mma.sync takes from them (PTX ISA, "Matrix
// multiply-accumulate operation using mma instruction"). All multiplications are made of tiles of 16 x 8; a
// lane is (g, t) = (lane / 4, lane % 4).
#pragma once

#include "base/problem/types.h"
#include "templates/ir/value.h"

namespace deepgen {

/// One multiplication of fragments: 16 x k by k x 8.
struct MmaShape {
  MmaShape(Type a, Type b, int64_t capability);

  Type a, b;
  bool doubles;               ///< f64: two registers an element
  bool halves;                ///< f64 before sm_90: only 8 x 8 x 4, two of which make one of ours
  int64_t bytes;              ///< of K
  int64_t k;                  ///< elements of K
  int64_t a_values, b_values; ///< a lane's part of a fragment: words of 32 bits, or doubles
};

/// How fragments come out of a tile.
enum class FragmentLoad {
  matrix,            ///< ldmatrix: K contiguous
  matrix_transposed, ///< ldmatrix.trans: M or N contiguous, 16-bit elements
  matrix_bytes,      ///< ldmatrix.trans of pairs of 8-bit elements, M or N contiguous, and a byte permutation
  elements           ///< one load for each element
};

/// An operand's tile in shared memory: `rows` rows as stored in global memory. Chunks of a row are permuted
/// by XOR with a function of the row, so that the rows that are read together lie in different banks.
struct SharedTile {
  SharedTile(Type, bool k_contiguous, int64_t extent, int64_t k_bytes);

  Type type;
  FragmentLoad load;
  bool k_contiguous;
  int64_t extent; ///< along M or N
  int64_t element, rows, row_bytes;
  int64_t chunk;   ///< bytes that stay together
  int64_t classes; ///< how many chunks are permuted among each other
  int64_t period;  ///< rows after which the permutation repeats

  int64_t bytes() const { return rows * row_bytes; }
  /// What the byte position within a row is XORed with.
  Value swizzle(NvIr&, Value row) const;
  Value address(NvIr&, Value row, Value column_bytes) const; ///< offset within the tile
};

/// Reads one operand's fragments for one warp. What does not change from tile to tile is computed at
/// construction.
class FragmentReader {
public:
  /// `first`: first row of A or column of B of the warp's tile; `tiles`: of 16 rows or 8 columns; `k_first`:
  /// byte position of the warp's first step of K; `steps` of K.
  FragmentReader(NvIr&, const SharedTile&, const MmaShape&, bool is_a, Value first, int64_t tiles,
                 Value k_first, int64_t steps);
  /// All fragments of one step, the values of a tile in order.
  Values read(Value stage, int64_t step) const;
  /// Those of one tile, where elements are loaded one by one.
  Values read_tile(Value stage, int64_t step, int64_t tile) const;

private:
  void prepare_matrix(Value first, Value k_first), prepare_transposed(Value first, Value k_first),
      prepare_elements(Value first, Value k_first);
  Values read_matrix(Value stage, int64_t step) const, read_transposed(Value stage, int64_t step) const,
      read_elements(Value stage, int64_t step) const;
  Value sum(Value, int64_t) const;

  NvIr& ir_;
  const SharedTile& tile_;
  const MmaShape& shape_;
  const bool is_a_;
  const int64_t tiles_, steps_;
  Values offsets_; ///< by step where K is contiguous, else by tile
};

/// Accumulators of one tile: 4 of f32, f64 or i32. c0 and c1 are in row g, c2 and c3 in row g + 8, columns 2t
/// and 2t + 1.
void multiply(NvIr&, const MmaShape&, mlir::ValueRange a, mlir::ValueRange b,
              llvm::MutableArrayRef<Value> sums);

} // namespace deepgen
