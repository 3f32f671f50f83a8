// gemv: a long matrix ("the weights", W) times at most 16 vectors, bound by the bandwidth at which W arrives.
// Small M: W is B and the vectors are rows of A; small N: W is A and the vectors are columns of B. Both
// sides, and both storage orders of W, share one generator: W has `rows` rows of K elements, whose bytes go
// from global memory to registers in pieces of up to 16 bytes with many loads in flight, and are used once. A
// "warp" is 32 lanes, also on AMD GPUs whose waves have 64.
#pragma once

#include "templates/core/operator_template.h"

namespace deepgen {

/// A config of gemv with everything that follows from it for one problem.
struct GemvTiling {
  GemvTiling(const Gemm&, const Config&);

  // What the problem says.
  bool weights_b; ///< W is B (small M); else W is A (small N)
  bool k_major;   ///< rows of W run along K in memory; else consecutive elements are of consecutive rows
  bool vectors_k_major; ///< the vectors' elements are consecutive in memory
  Type weight_type, vector_type;
  int64_t rows, vectors, k; ///< vectors: that a block multiplies by; of a range of M a parameter
  bool any_k;               ///< a call says K, at most k
  int64_t size;             ///< bytes of an element of W and of the vectors

  // The parameters; see Gemv::parameters().
  bool mma;
  int64_t vec, width, row_warps, k_warps, unroll, splits, hint;
  bool pipeline, dependent, prefetch;

  // What follows.
  int64_t elements;        ///< of W in one load
  int64_t lanes_k;         ///< lanes of a warp side by side along K
  int64_t lane_k;          ///< elements of K from one such lane to the next
  int64_t vector_elements; ///< of the vectors in one load
  int64_t groups;          ///< row groups: rows (or runs of `elements` rows) of W that one lane reads
  int64_t positions;       ///< loads of one lane along K, per row group and iteration
  int64_t k_step;          ///< elements of K that a warp covers in one iteration
  int64_t columns;         ///< accumulator columns: the vectors, for mma rounded up to 8
  int64_t weights;         ///< matrices in B: two with a gate, each for half of the row warps
  int64_t block_rows;      ///< of W (of both) that a block multiplies
  int64_t block_outputs;   ///< of its rows or columns of D
  int64_t threads, row_blocks;
  int64_t rounds;  ///< of vectors; of a range of M those of the largest call
  int64_t workers; ///< warps that share K: k_warps * splits

  /// Bytes to which rows of the vectors must be aligned.
  int64_t vector_align() const { return vectors_k_major ? vector_elements * size : size; }
  int64_t loads() const { return groups * positions; }
  int64_t registers() const; ///< estimate, for one thread
  int64_t shared_bytes() const;
  /// Blocks whose registers a multiprocessor is to hold: what the assembler allocates for.
  int64_t min_blocks(const std::string& arch) const;
};

/// True when the vectors are rows of A and the weights are B.
bool gemv_weights_are_b(const Gemm&);

class Gemv : public GemmTemplate {
public:
  std::string name() const override { return "gemv"; }
  int64_t revision() const override { return 1; }
  bool serves_range(Size size) const override { return size != Size::n; }
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
