// Micro-kernels: one register tile of D over one block of k, with the scaling and the epilogue that finish
// it.
#pragma once

#include "templates/ir/epilogue.h"

namespace deepgen {

/// The argument block of a CPU GEMM kernel: the slots in the order in which the kernels here read them. Those
/// up to "b1" are the same for all problems, and behind them come the operands of the epilogue other than
/// bias, and sizes of which the problem has ranges.
std::vector<std::string> gemm_args(const Gemm&);
/// Loads a named slot as i64, pointer or (alpha, beta, bounds) scalar of the kernel's type.
Value load_arg(Ir&, const Gemm&, Value args, const std::string& name);
/// The operands of the epilogue, without bias, of which a tile has its own part: columns, rows and matrices.
std::vector<EpilogueOperand> tile_operands(const Gemm&);

/// Where the operands of a tile lie. Strides are runtime values except inside a panel.
enum class Access {
  panel,    ///< packed: element (k, w) at k * width + w; of A in the dot form a panel of vectors (pack.h)
  k_rows,   ///< element (k, w) at k * ld + w: the operand as stored when its rows run along M or N
  k_columns ///< element (k, w) at w * ld + k: its rows run along K
};

struct MicroTile {
  int64_t rows, columns;    ///< of D that this variant computes; all of them exist
  int64_t a_width, b_width; ///< of the panels; with a gate, the left half of B's is one weight and the right
                            ///< half the other
  Access a, b;              ///< k_columns for b means the dot form: vectors along k, sums of lanes at the end
  int64_t unroll = 1;       ///< steps of k per iteration
  int64_t prefetch = 0;     ///< distance in steps of k at which B is prefetched; 0: not
  int64_t next_rows = 0;    ///< dot form: rows ahead of which B is prefetched into L2; 0: not
  /// Lines of the cache of a B that is packed ahead, asked for in each iteration, from a further argument on.
  int64_t lines = 0;
  bool k_multiple = false;   ///< every block of k is a multiple of `unroll`
  bool single_block = false; ///< K is one block: every call is the first and the last
  int64_t k_tail = 0;        ///< dot form: K modulo the vector length, handled by the last block
  bool k_ragged = false;     ///< dot form: that is known at run time
  /// `columns` are whole vectors, of which the last one (of each weight) has a number of columns that is
  /// known at run time, at least one: a further argument.
  bool ragged = false;
  /// Where sums go that are not final yet: to D itself when 0, else to a scratch tile with rows of so many
  /// elements, because D may be an operand of the epilogue.
  int64_t sums_ld = 0;
};

/// Defines (once) and names the function
///   (args, a, lda, b, ldb, d, c, bias, kc, first, last[, sums][, tile_operands()...][, ragged columns][,
///   lines])
/// that adds the product over kc steps to the tile: D = alpha AB + beta C on the first block, D += alpha AB
/// later (with `sums` in D's place but for the final values), and the epilogue on the last. With a gate
/// `sums` has those of both weights, and gate and beta C belong to the last block. first and last are i64
/// flags. C is not read when beta is 0, D not on the first block. Operands that are D itself are read before
/// it is written.
std::string micro_kernel(Ir&, const Gemm&, const MicroTile&);

} // namespace deepgen
