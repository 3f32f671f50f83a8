// What a lock entry of a problem with ranges has beside others: several kernels, and their evidence by point.
#pragma once

#include "base/json/json.h"
#include "base/problem/points.h"
#include "base/problem/problem.h"
#include "generator/lock/lock.h"

#include <array>
#include <optional>
#include <vector>

namespace deepgen {

/// The field, where it is one; evidence may be anything.
template <typename T>
std::optional<T> find_in(const Json& evidence, const char* key) {
  if (!evidence.is_object() || !evidence.contains(key) || !is_a<T>(evidence[key])) return std::nullopt;
  return evidence[key].get<T>();
}

struct EvidencePoint {
  struct Regime {
    std::string name;
    std::array<double, 3> ratio;
    double vendor;
  };
  Sizes at;
  double seconds = 0;               ///< 0: unknown
  std::array<double, 3> ratio{};    ///< low, median and high, to the default's time; zeros: unknown
  double vendor = 0, weight = 1;    ///< the vendor's time over the kernel's, 0: unknown
  std::vector<Regime> regimes = {}; ///< of those that the ratios are geometric means of, where there are two
};

/// What is no point is left out, and what is no number of it unknown: somebody may have edited it.
std::vector<EvidencePoint> evidence_points(const Json& evidence);

/// Throws Error when it must not be locked: a kernel that was not verified, or none found.
LockEntry ranged_entry(const Problem&, const std::string& arch, const Device&, const std::string& toolchain,
                       const RecordLog& final, const std::vector<RecordLog>& logs);

/// Why the kernels beside the first one cannot be built from, or do not share the calls: each has to take
/// some, and none two of them. Empty when they are good; also of a problem without ranges.
std::string why_stale_ranges(const LockEntry&);

/// Why it has more kernels than a function may link; empty when it has not.
std::string why_too_many(const LockEntry&, size_t kernels);

/// The points and weights of which the entry's evidence tells, where these are others than the ones given:
/// what it was tuned for. Empty where they are the same, or it does not tell. Its kernels are right at all
/// sizes, so it is not stale.
std::string tuned_for_others(const LockEntry&, const Problem&, const TunePoints&);

/// The lock's entry of the same problem with other ranges, whose kernels were not tuned for these; nullptr
/// when there is none.
const LockEntry* find_other_ranges(const Lock&, const Problem&, const std::string& arch);
/// That of the same problem, but for BATCH_INVARIANT, which one has and the other has not.
const LockEntry* find_other_invariance(const Lock&, const Problem&, const std::string& arch);

/// A line for `lock show`: of a batch invariant problem the order of the entry's sums, and what it costs.
/// Empty of others.
std::string order_text(const LockEntry&);

/// What to warn of where its kernels are too few for the bound of a crossover (base/search/crossover.h);
/// empty where they are not, or nothing is told.
std::string bound_warning(const LockEntry&);

/// A table for `lock show`: sizes, config, and the ratios at the points. Empty without ranges.
std::string ranges_text(const LockEntry&);

} // namespace deepgen
