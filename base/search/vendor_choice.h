// Whether a finished search found the vendor's library faster than what it locks, and what calls it.
#pragma once

#include "base/search/decide.h"
#include "base/search/vendor_call.h"

namespace deepgen {

struct VendorChoice {
  std::optional<VendorCall> call; ///< the vendor is faster beyond the noise
  std::string why_not;            ///< it is, and nothing can call it as it was timed
};

/// By the hold-out alone: its ratio is of times that chose neither. Of a search for balanced calls by the
/// geometric mean over both regimes.
VendorChoice vendor_choice(const RecordLog& final, const Decision&, const std::string& device);

} // namespace deepgen
