// Whether one lock entry is faster than another, by what they were measured against.
#pragma once

#include "generator/lock/lock.h"

#include <optional>

namespace deepgen {

/// Times of one entry over those of another: below 1, the first is faster.
struct EvidenceRatio {
  double low = 1, ratio = 1, high = 1;
  double noise = 0;      ///< the larger noise floor of both
  double worst = 0;      ///< of a problem with ranges, at one size; 0: of another problem
  std::string reference; ///< what both were measured against: "openblas 0.3.21", "the default config"
};

/// From ratios to the same reference: the vendor's library of one name and version or, where one toolchain
/// made both, the default config. Both must be of one problem, measured on one device, in one way. The
/// interval has the worse ends of both. Of a problem with ranges the geometric mean over the sizes that both
/// were measured at, which must be half of each one's at least, by the weights that `entry` has.
std::optional<EvidenceRatio> ratio_of(const LockEntry& entry, const LockEntry& other);
/// Whether the first is faster beyond the noise, and at no size much slower.
bool is_win(const EvidenceRatio&);
/// Why there is none, for people.
std::string why_no_ratio(const LockEntry&, const LockEntry& other);
/// Of the entry over the vendor's library, as its evidence has it.
std::optional<EvidenceRatio> ratio_to_vendor(const LockEntry&);

/// "1.120x as fast [1.104, 1.137], by openblas 0.3.21"
std::string text_of(const EvidenceRatio&);

} // namespace deepgen
