#include "measure/race/options.h"

namespace deepgen {

std::string to_string(Caches c) {
  return c == Caches::cold ? "cold" : c == Caches::warm ? "warm" : "weights-cold";
}

} // namespace deepgen
