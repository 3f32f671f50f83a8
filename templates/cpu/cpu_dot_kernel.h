// Micro-kernels of cpu_dot: one tile over one block of K.
#pragma once

#include "templates/cpu/cpu_dot.h"
#include "templates/cpu/cpu_words.h"

namespace deepgen {

/// Of a tile; all that it computes exists.
struct DotTile {
  int64_t rows, columns; ///< of D
};

/// Defines (once) and names the function (args, a, lda, b, ldb, k, first, last, sums, m, n, entry): the
/// product over k elements of K, added to the sums of earlier blocks; D on the last one. first and last are
/// i64 flags, m and n of the tile's first element. Sums that are not final stay in `sums`. A further argument
/// of tilings with `lines`: where the part of B begins that this tile asks for.
std::string dot_kernel(Ir&, const Gemm&, const DotTiling&, const DotTile&);

/// The same by AMX, all of the tile mr x nr.
std::string dot_tiles_kernel(Ir&, const Gemm&, const DotTiling&, const DotTile&);
/// The types of their arguments.
llvm::SmallVector<mlir::Type> dot_parameters(Ir&, const DotTiling&);
constexpr int64_t kLineWords = 16; ///< of a line of the cache
/// An iteration's lines, from `offset` words behind `ahead` on.
void ask_for_lines(Ir&, const DotTiling&, Value ahead, Value offset);
/// Loads the tiles' configuration, by way of scratch memory of 64 bytes; and gives the tiles back.
void begin_tiles(Ir&, Value scratch);
void end_tiles(Ir&);

/// From sums in scratch to D, row by row: for what is too long to stand in the code for every register.
void finish_rows(Ir&, const Gemm&, const DotTiling&, const DotTile&, Words&, class DotFinish&, Value sums);

} // namespace deepgen
