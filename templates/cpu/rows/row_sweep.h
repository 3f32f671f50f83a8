// A sweep of cpu_rows: some columns of all rows of a tile, vector by vector.
#pragma once

#include "templates/cpu/rows/cpu_rows.h"
#include "templates/cpu/rows/value_pairs.h"

#include <functional>
#include <optional>

namespace deepgen {

/// A vector of a row: `count` neighbours behind a column, or half of the pair that begins at one. Scratch has
/// room for a vector at its own column, whichever elements it holds: all sweeps pair the same ones.
struct Place {
  Value column;       ///< of the vector's own
  int64_t offset = 0; ///< columns since its step began
  int64_t count;
  std::optional<Half> half;
  Value pair; ///< the pair's first column
};

/// What a sweep computes of every row: values of all lanes and chains, combined.
struct Reduction {
  Value neutral;
  size_t width = 1; ///< sums of one row
  bool rounds = false;
  std::function<Value(Value, Value)> combine;
};

class RowSweep {
public:
  /// Of `each` steps it takes the first; where that is more than 1, whole steps alone.
  RowSweep(Ir& builder, const RowsTiling& tiling, size_t rows, int64_t each = 1)
      : ir(builder), t(tiling), rows_(rows), each_(each) {}

  /// One vector of all rows; `sums` has one value a row, or none.
  using Step = std::function<void(const Place&, llvm::MutableArrayRef<Value> sums)>;

  /// Visits `columns` columns behind `from`; each of the `unroll` vectors of a step has sums of its own.
  /// Neighbours are a pair where they can be. Returns one vector a row.
  Values over(Value from, int64_t columns, const Reduction*, const Step&);

private:
  void vector(Values& sums, Value start, int64_t j, int64_t count, bool paired, const Step&);
  Values steps_between(Value begin, Value end, const Values& initial, const Step&);
  Values groups_between(Value begin, Value end, const Values& initial, const Reduction&, const Step&);
  Value combined(const Values& sums, size_t r, const Reduction&);

  Ir& ir;
  const RowsTiling& t;
  const size_t rows_;
  const int64_t each_;
  int64_t chains_ = 1;
  size_t sums_ = 0; ///< of a chain
};

} // namespace deepgen
