// Whether a finished search found the vendor's library faster than what it locks, and what calls it.
#pragma once

#include "base/search/decide.h"
#include "base/search/vendor_call.h"

namespace deepgen {

struct VendorChoice {
  std::optional<VendorCall> call; ///< the vendor is faster
  std::string why_not;            ///< it is, and nothing can call it as it was timed
};

/// By the hold-out alone: its ratio is of times that chose neither. Faster is what the noise confirms, and
/// what is ahead by more than 1 % in the median: who asks for a fallback asks never to be slower, so doubt is
/// not the kernel's. Of a search for balanced calls in either regime, or in their geometric mean.
VendorChoice vendor_choice(const RecordLog& final, const Decision&, const std::string& device);

} // namespace deepgen
