// cpu_tile: GEMM by register tiles on x86-64, after Goto and van de Geijn ("Anatomy of High-Performance
// Matrix Multiplication", 2008): blocks of A and B sized for the caches, packed or read in place, around a
// micro-kernel.
#pragma once

#include "templates/core/operator_template.h"
#include "templates/ir/vector_isa.h"

namespace deepgen {

/// Of the parameter prefetch, with form 1: the same place in the rows of the next tile, into L2.
inline constexpr int64_t kNextTile = 512;

/// A config of cpu_tile with everything that follows from it for one problem. Tiles are mr x nr of D.
struct CpuTiling {
  CpuTiling(const Gemm&, const Config&);

  VectorIsa isa;
  bool dot; ///< vectors along K, for A and B whose rows both run along K
  int64_t mr, nv, kc, mc, nc, unroll;
  bool pack_a, pack_b;
  int64_t loops; ///< see the parameter's documentation
  int64_t prefetch;

  int64_t nr;                 ///< columns of B of a tile: with a gate, half of them of each weight
  int64_t dr;                 ///< columns of D of a tile
  bool packed_b;              ///< B is packed ahead of calls
  int64_t pitch;              ///< columns of B's panels; a tile of a B that is packed ahead may have less
  int64_t m_tiles, n_tiles;   ///< of the problem
  int64_t m_rest, n_rest;     ///< rows, columns of D of the last tile; mr, dr when it is whole. Not of ranges
  int64_t mc_tiles, nc_tiles; ///< of a cache block
  int64_t k_blocks;
  int64_t a_depth;                ///< steps of k in a panel of A: with dot, of whole vectors
  int64_t a_elements, b_elements; ///< of the packed blocks, 0 when not packed
  /// Scratch for sums that are not final yet. 0: they are kept in D, which has room for them without a gate,
  /// and is then no operand of the epilogue (residual and multiplier may be D itself).
  int64_t sums_ld, sums_elements;
  /// With `prefetch` of a B that is packed ahead: tiles that a block of B serves, each of which asks for its
  /// share of what comes behind; lines of the cache in an iteration. 0: none does.
  int64_t shares, lines;
};

class CpuTile : public GemmTemplate {
public:
  std::string name() const override { return "cpu_tile"; }
  int64_t revision() const override { return 1; }
  int64_t revision_for(const Gemm&, const Config&) const override;
  std::string why_not(const Gemm&, const std::string& arch) const override;
  bool serves_packed_b() const override { return true; }
  bool serves_threads() const override { return true; }
  bool serves_range(Size) const override { return true; }
  std::vector<Parameter> parameters(const Gemm&, const Device&) const override;
  /// With ranges: at which of default_points() a config is legal does not matter, as tiles of any kind
  /// compute any size.
  std::string why_illegal(const Gemm&, const Device&, const Config&) const override;
  bool dead_end(const Gemm&, const Device&, const Config&, size_t assigned) const override;
  double cost(const Gemm&, const Device&, const Config&) const override;
  std::vector<Choice> fallbacks(const Gemm&, const std::string& arch, const Config&) const override;
  std::string sum_order(const Gemm&, const std::string& arch, const Config&) const override;
  Gemm awkward(const Gemm&, const Config&) const override;
  Kernel emit(mlir::ModuleOp, const Gemm&, const std::string& arch, const Config&) const override;
};

} // namespace deepgen
