// Groups of rows by a vendor's library, which multiplies one group at a time.
#pragma once

#include "measure/vendor/gpu/cuda_vendor.h"

namespace deepgen::cuda {

/// The algorithms that stand for a loop over the groups. Their first bits say how each call's own is chosen.
std::vector<Vendor::Algorithm> group_loops();

/// A call for each group that has rows, one after the other on the stream, as the host would make them if it
/// knew the groups. `workspace`: of so many bytes.
Bench::Enqueue group_loop(const VendorPlan&, const Vendor::Algorithm&, Bench::Ring&,
                          const std::function<Address(uint64_t bytes)>& workspace);

} // namespace deepgen::cuda
