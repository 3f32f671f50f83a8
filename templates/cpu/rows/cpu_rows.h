// cpu_rows: softmax and normalisations of rows on x86-64. A row is read in blocks that a cache keeps: where a
// block's maximum, or mean, must be known before its sums, its second reading is from there.
#pragma once

#include "templates/core/operator_template.h"
#include "templates/ir/vector_isa.h"

namespace deepgen {

/// A config of cpu_rows with everything that follows from it for one problem.
struct RowsTiling {
  RowsTiling(const Rows&, const Config&);

  VectorIsa isa;
  int64_t rows;   ///< of a tile, which go side by side
  int64_t unroll; ///< vectors of each row a step, each with sums of its own
  int64_t block;  ///< columns
  bool keep;      ///< rows lie in scratch between sweeps
  bool stream;    ///< D goes past the caches where it is aligned
  bool ahead;     ///< lines of the next tile are asked for while D is written
  bool paired;    ///< the vectors of a step go as pairs of value_pairs.h

  int64_t tiles, rest;     ///< of the problem; rows of the last tile, `rows` when it is whole
  int64_t blocks, last;    ///< of a row; columns of the last one
  int64_t scratch_columns; ///< of one row, 0 where none is kept

  /// The first sweep over a block of layer_norm takes one step of so many where it only reads: its mean is a
  /// centre that the second one corrects.
  static constexpr int64_t sample_each = 4;
  bool samples; ///< blocks that are long enough
  /// Columns of a block that its first sweep takes.
  int64_t sampled(int64_t columns) const;
};

class CpuRows : public RowsTemplate {
public:
  std::string name() const override { return "cpu_rows"; }
  int64_t revision() const override { return 3; } // 3: layer_norm's first sweep is a sample; ahead
  std::string why_not(const Rows&, const std::string& arch) const override;
  std::vector<Parameter> parameters(const Rows&, const Device&) const override;
  std::string why_illegal(const Rows&, const Device&, const Config&) const override;
  bool dead_end(const Rows&, const Device&, const Config&, size_t assigned) const override;
  double cost(const Rows&, const Device&, const Config&) const override;
  std::vector<Choice> fallbacks(const Rows&, const std::string& arch, const Config&) const override;
  Rows awkward(const Rows&, const Config&) const override;
  Kernel emit(mlir::ModuleOp, const Rows&, const std::string& arch, const Config&) const override;
};

} // namespace deepgen
