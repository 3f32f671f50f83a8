// mfma_attention: attention on the matrix cores of AMD's CDNA GPUs. A block keeps rows of Q in registers and
// goes over blocks of keys and values, which come through registers into LDS. Scores are made transposed, S^T
// = K Q^T: the four keys of a query that a lane then has are what the second product, O^T = V^T P^T, takes
// from it. So exponentials stay in their lane, which also has all its sums of that one query.
#pragma once

#include "templates/amd/amd_matrix_shape.h"
#include "templates/amd/attention/lds_tile.h"
#include "templates/core/operator_template.h"
#include "templates/gpu/attention/attention_tile.h"

namespace deepgen {

/// A config of mfma_attention with everything that follows from it for one problem.
struct MfmaAttentionTiling : AttentionTile {
  MfmaAttentionTiling(const Attention&, const std::string& arch, const Config&);

  int64_t waves;    ///< that share the rows
  int64_t stages;   ///< blocks of keys and values in LDS
  int64_t resident; ///< blocks that a compute unit must have room for
  int64_t threads;
  MatrixShape shape;
  int64_t depth, columns; ///< head_dim in whole steps of 32, value_dim in whole tiles of 16
  /// A row of `key` is one key; of `value` a column of V, with 32 keys behind each other: four of the first
  /// 16, four of the second, and so on, as a lane multiplies them.
  LdsTile key, value;
  int64_t stage_bytes, shared;
  int64_t registers; ///< of a lane, about

  int64_t key_rows() const { return keys / 16; } ///< tiles of keys
  int64_t column_tiles() const { return columns / 16; }
  int64_t steps() const { return depth / 32; } ///< of the first product
  int64_t key_steps() const { return keys / 32; }
};

class MfmaAttention : public AttentionTemplate {
public:
  std::string name() const override { return "mfma_attention"; }
  int64_t revision() const override { return 1; }
  std::string why_not(const Attention&, const std::string& arch) const override;
  bool serves_pages() const override { return true; }
  bool serves_bias() const override { return true; }
  bool serves_splits() const override { return true; }
  int64_t workspace(const Attention&, const Config&) const override;
  std::vector<Parameter> parameters(const Attention&, const Device&) const override;
  std::string why_illegal(const Attention&, const Device&, const Config&) const override;
  bool dead_end(const Attention&, const Device&, const Config&, size_t assigned) const override;
  double cost(const Attention&, const Device&, const Config&) const override;
  Attention awkward(const Attention&, const Config&) const override;
  Kernel emit(mlir::ModuleOp, const Attention&, const std::string& arch, const Config&) const override;
};

} // namespace deepgen
