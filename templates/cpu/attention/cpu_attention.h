// cpu_attention: attention on x86-64, after Rabe and Staats ("Self-attention Does Not Need O(n^2) Memory",
// 2021) and Dao et al. ("FlashAttention", 2022): blocks of rows of Q meet blocks of keys, whose scores never
// leave the first-level cache; a running maximum and sum make the softmax.
#pragma once

#include "templates/core/operator_template.h"
#include "templates/ir/vector_isa.h"

namespace deepgen {

/// A config of cpu_attention with everything that follows from it for one problem. The heads of Q that share
/// one of K and V are packed: row r of such a group is head r % group of token r / group.
struct AttentionTiling {
  AttentionTiling(const Attention&, const Config&);

  VectorIsa isa;
  int64_t mr;     ///< rows of a strip: of a register tile of both products
  int64_t strips; ///< of a block
  int64_t nv;     ///< vectors of keys of a register tile of scores
  int64_t bk;     ///< keys of a block
  bool direct;    ///< keys and values are read where they lie: a dot product for each score

  int64_t rows;           ///< of a block
  int64_t panel;          ///< keys of a register tile
  int64_t q_ld, value_ld; ///< elements of a row in scratch: dimensions, in whole vectors
  int64_t value_vectors;  ///< of a register tile of the second product
  // Scratch, in elements from its beginning.
  int64_t q_at, out_at, keys_at, values_at, scores_at, most_at, sum_at, factor_at, from_at, to_at, bias_at;
  int64_t scratch_bytes;
};

/// Rows of a head of K, at most, whose keys and values a config may read where they lie: no other rows would
/// share what packing costs.
inline constexpr int64_t kMostDirectRows = 8;

/// Where the scores of a row end, or begin, or its bias is: 8 bytes in scratch.
inline constexpr int64_t bound_elements = 2;

class CpuAttention : public AttentionTemplate {
public:
  std::string name() const override { return "cpu_attention"; }
  int64_t revision() const override { return 1; }
  std::string why_not(const Attention&, const std::string& arch) const override;
  bool serves_pages() const override { return true; }
  bool serves_bias() const override { return true; }
  std::vector<Parameter> parameters(const Attention&, const Device&) const override;
  std::string why_illegal(const Attention&, const Device&, const Config&) const override;
  bool dead_end(const Attention&, const Device&, const Config&, size_t assigned) const override;
  double cost(const Attention&, const Device&, const Config&) const override;
  std::vector<Choice> fallbacks(const Attention&, const std::string& arch, const Config&) const override;
  Attention awkward(const Attention&, const Config&) const override;
  Kernel emit(mlir::ModuleOp, const Attention&, const std::string& arch, const Config&) const override;
};

} // namespace deepgen
