// What a lock entry of a problem with ranges has beside others: several kernels, and their evidence by point.
#pragma once

#include "base/problem/problem.h"
#include "generator/lock/lock.h"

namespace deepgen {

/// Throws Error when it must not be locked: a kernel that was not verified, or none found.
LockEntry ranged_entry(const Gemm&, const std::string& arch, const Device&, const std::string& toolchain,
                       const RecordLog& final, const std::vector<RecordLog>& logs);

/// Why the kernels beside the first one cannot be built from, or do not share the calls: each has to take
/// some, and none two of them. Empty when they are good; also of a problem without ranges.
std::string why_stale_ranges(const LockEntry&);

/// The lock's entry of the same problem with other ranges, whose kernels were not tuned for these; nullptr
/// when there is none.
const LockEntry* find_other_ranges(const Lock&, const Problem&, const std::string& arch);

/// A table for `lock show`: sizes, config, and the ratios at the points. Empty without ranges.
std::string ranges_text(const LockEntry&);

} // namespace deepgen
