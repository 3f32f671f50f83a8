// What a log tells of the vendor's call that a function may make in place of its kernel; and what is printed
// of the vendor's library beside times.
#pragma once

#include "base/json/json.h"
#include "base/problem/problem.h"
#include "measure/race/contest.h"
#include "measure/vendor/gpu/cuda_vendor.h"

#include <string>
#include <vector>

namespace deepgen {

/// Adds "call" to the hold-out's vendor where its fastest algorithm does all of the problem in one call of
/// one library; else "no_call", why there is none. Nothing where no vendor was timed.
void add_vendor_call(ContestResult&, const Problem&, const std::string& arch, const cuda::Vendor&);
/// The same of the CPU's baseline: "openblas 0.3.21".
void add_vendor_call(ContestResult&, const Problem&, const std::string& baseline);

/// Where cuDNN is, and its version; or why it is of no use.
std::string cudnn_text();

/// Why there is no baseline, and how much of the library was left out: a line each.
std::vector<std::string> vendor_notes(const cuda::Vendor&);

} // namespace deepgen
