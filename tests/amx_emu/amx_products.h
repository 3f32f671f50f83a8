// Products of tiles, to the bit (Intel's manual, volume 2, TDPBF16PS and TDPBSSD).
#pragma once

#include "tests/amx_emu/amx_emu.h"

namespace deepgen::amx {

struct TileSizes {
  int rows, columns, words; ///< of the sums; words of a row of the left tile
};

void multiply_tiles(Op, const TileSizes&, Machine::Tile& sums, const Machine::Tile& left,
                    const Machine::Tile& right);

} // namespace deepgen::amx
