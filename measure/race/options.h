// What one measurement may take, and on what its calls find the caches.
#pragma once

#include "base/kernel/regime.h"

#include <cstdint>
#include <string>

namespace deepgen {

/// What a call on a GPU finds in the caches. cold: nothing. weights_cold: all but B, as where every layer has
/// weights of its own and the rest is small; warm: all that fits.
enum class Caches { cold, weights_cold, warm };
std::string to_string(Caches);

struct MeasureOptions {
  double seconds = 20; ///< for everything but waiting for the machine
  double most = 0;     ///< that all rounds and the finals of a search may take, whatever happens; 0: no bound
  double call_seconds = 10; ///< a call without an answer for longer hangs
  uint64_t seed = 1;
  std::string devices; ///< GPUs that may be used: see cuda::is_allowed()
  Caches caches = Caches::cold;
  int warmup = 0;                        ///< calls of each arm before its first sample
  int samples = 60;                      ///< playoff: of each arm, at most
  bool vendor = true;                    ///< playoff: time the vendor library too
  TunedFor regime = TunedFor::sustained; ///< on GPUs; CPUs have one alone
};

} // namespace deepgen
