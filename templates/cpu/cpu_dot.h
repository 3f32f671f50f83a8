// cpu_dot: GEMM of types of 16 and 8 bits on x86-64. As cpu_tile, blocks of A and B are packed around a
// micro-kernel; here in words of 32 bits, each with a group of K, which an instruction multiplies and adds
// up. Where a level has no such instruction, packing converts to f32 or to pairs of i16.
#pragma once

#include "templates/core/operator_template.h"
#include "templates/cpu/dot_words.h"
#include "templates/ir/vector_isa.h"

namespace deepgen {

/// Where a micro-kernel finds B.
enum class DotForm {
  panel,   ///< packed: by the kernel, or ahead of calls
  along_k, ///< in place, its rows along K; so are A's, or panels of them. Sums of lanes at the end. With
           ///< AMX: turned
  in_place ///< its rows along N
};
constexpr int64_t kQuads = 3;     ///< of the parameter: as panel, see DotTiling::quads
constexpr int64_t kTileRows = 16; ///< of a tile of AMX, and words of 32 bits in its row

/// The same: as along_k, and each tile asks for the rows of the next one, into L2.
constexpr int64_t kAlongAsking = 4;

/// The form of a parameter's value.
inline DotForm form_of(int64_t value) {
  return value == kQuads ? DotForm::panel : value == kAlongAsking ? DotForm::along_k : DotForm(value);
}

/// A config of cpu_dot with everything that follows from it for one problem. Tiles are mr x dr of D.
struct DotTiling {
  DotTiling(const Gemm&, const Config&);

  VectorIsa isa; ///< of lanes of f32
  Dot dot;
  Type d;
  DotForm form;
  bool asks;  ///< of rows of B along K: for those of the next tile
  bool quads; ///< of f32 by i8 in panels: lanes are four columns' groups of K, as they lie in memory
  int64_t mr, nv, kc, mc, nc, unroll;
  int64_t prefetch;     ///< rows of words ahead of which a B that is packed ahead is asked for; 0: not
  bool pack_a, a_stays; ///< a_stays: a panel of A, while panels of B pass
  bool by_columns;      ///< all blocks of K of a column of tiles, then the next column's
  bool packed_b;        ///< B is packed ahead of calls
  bool turned;          ///< AMX: tiles of sums have rows of B, in place, and columns of A, packed

  int64_t halves;             ///< 2 with a gate: columns of both weights
  int64_t nr, dr;             ///< columns of B of a tile; of D
  int64_t pitch;              ///< columns of B's panels; a tile of a B that is packed ahead may have less
  int64_t up;                 ///< where a panel's columns of a gate's second weight begin
  int64_t chunk;              ///< elements of K in a vector of words
  int64_t m_tiles, n_tiles;   ///< of the problem
  int64_t m_rest, n_rest;     ///< rows, columns of D of the last tile; mr, dr when it is whole
  int64_t mc_tiles, nc_tiles; ///< of a block
  int64_t k_blocks, k_last;   ///< elements of K of the last block
  int64_t block_words;        ///< of a row or column in a panel, at most
  int64_t a_panel,
      b_panel; ///< words of a panel; 0 when not packed. B's begin with what dot_shift_function() makes
  int64_t a_panels, b_panels; ///< of a block. Of what AMX reads in place, the last, ragged tile has one
  int64_t sums_ld, sums_tile; ///< of a tile of sums in scratch
  bool by_registers;          ///< a tile becomes D without scratch in between, where K is one block
  int64_t config_words;       ///< of scratch for the tiles' configuration
  /// With `prefetch`: tiles that a block of B serves, each of which asks for its share of what comes behind;
  /// lines of the cache in an iteration. 0: none does.
  int64_t shares, lines;

  /// Vectors run along K, of A as of B.
  bool along() const { return form == DotForm::along_k && !turned; }
  /// Panels of A have vectors of each row's words side by side.
  bool a_by_rows() const { return dot.tiles() ? !turned : along(); }
  /// Whose whole tiles AMX reads where they lie.
  bool a_in_place() const { return dot.tiles() && !pack_a; }
  bool b_in_place() const { return turned; }
  /// Tiles of a column ask for its next panel of B, which is not in L1, and not in L2 where B is large.
  bool asks_for_panel() const { return by_columns && form == DotForm::panel && !packed_b; }
  int64_t steps() const { return block_words / kTileRows; } ///< of AMX, in a block of K
  /// With AMX: one block has all rows of A, and is packed ahead of several blocks of N.
  bool a_once() const { return dot.tiles() && pack_a && mc_tiles == m_tiles && nc_tiles < n_tiles; }
  bool sweeps_rows() const { return !a_stays && !by_columns; }
  /// All blocks of K of A are in panels at once, each behind the one before.
  bool a_of_all_k() const { return by_columns || a_once(); }
  int64_t a_words() const { return a_panel * a_panels * (a_of_all_k() ? k_blocks : 1); }
  int64_t b_words() const { return b_panel * b_panels * k_blocks; }
  int64_t sums_words() const;
  int64_t workspace_bytes() const;
  int64_t isa_code() const; ///< Kernel::isa
};

class CpuDot : public GemmTemplate {
public:
  std::string name() const override { return "cpu_dot"; }
  int64_t revision() const override { return 2; }
  int64_t revision_for(const Gemm&, const Config&) const override;
  std::string why_not(const Gemm&, const std::string& arch) const override;
  bool serves_packed_b() const override { return true; }
  bool serves_threads() const override { return true; }
  std::vector<Parameter> parameters(const Gemm&, const Device&) const override;
  std::string why_illegal(const Gemm&, const Device&, const Config&) const override;
  bool dead_end(const Gemm&, const Device&, const Config&, size_t assigned) const override;
  double cost(const Gemm&, const Device&, const Config&) const override;
  std::vector<Choice> fallbacks(const Gemm&, const std::string& arch, const Config&) const override;
  Gemm awkward(const Gemm&, const Config&) const override;
  Kernel emit(mlir::ModuleOp, const Gemm&, const std::string& arch, const Config&) const override;
};

} // namespace deepgen
