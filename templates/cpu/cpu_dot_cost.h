// What configs of cpu_dot should cost.
#pragma once

#include "templates/cpu/cpu_dot.h"

namespace deepgen {

double dot_seconds(const Gemm&, const Device&, const DotTiling&);

} // namespace deepgen
