// AmdArch: what of an AMD arch decides how many waves run at a time. A "multiprocessor" of an AMD GPU is a
// compute unit; on RDNA a work-group processor, on whose four SIMDs a block runs.
#pragma once

#include "base/kernel/device.h"

namespace deepgen {

struct AmdArch {
  const char* name;                   ///< "gfx942"
  int64_t wave;                       ///< threads of a wave
  int64_t registers;                  ///< vector registers of a SIMD, for each lane, which its waves share
  int64_t granule;                    ///< registers are given to a wave in multiples of it
  int64_t most_registers;             ///< that a wave can have, accumulation registers included
  int64_t most_waves;                 ///< on a SIMD
  int64_t lds;                        ///< bytes of shared memory (LDS) of a multiprocessor
  int64_t lds_block;                  ///< of a block
  bool mfma;                          ///< has the matrix instructions of CDNA
  static constexpr int64_t simds = 4; ///< of a multiprocessor

  int64_t threads() const { return simds * most_waves * wave; } ///< that a multiprocessor holds at a time
  /// Waves of a SIMD that run at a time; 0 when not even one block fits.
  int64_t waves(int64_t registers_of_lane, int64_t lds_of_block, int64_t threads_of_block) const;
};

/// Null for an arch that is not AMD's, or not known.
const AmdArch* find_amd(const std::string& arch);
std::string amd_archs(); ///< "gfx906 gfx90a ...", for messages
Device generic_amd(const AmdArch&);

} // namespace deepgen
