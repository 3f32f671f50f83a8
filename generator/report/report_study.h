// Study: all that record logs say about one problem on one device, and what follows from it. The data behind
// the report page, the CSV tables and the summary.
#pragma once

#include "base/kernel/device.h"
#include "base/problem/problem.h"
#include "base/search/decide.h"
#include "generator/lock/lock.h"

#include <map>
#include <optional>

namespace deepgen {

/// A candidate of a search round.
struct StudyTrial {
  Record record;
  std::optional<double> estimate; ///< seconds by the template's cost model
  std::string ended;              ///< date and time at which its round had been measured; empty: not known
  std::string no_estimate; ///< why there is none: the config is not legal any more, the template is gone, ...
};

/// Times as fast as something else, with the 95 % interval.
struct Speed {
  double value = 1, low = 1, high = 1;
};

/// Of the winner, in one regime of the hold-out.
struct RegimeSpeed {
  std::optional<Speed> against_default, against_vendor;
  std::string verdict; ///< against the vendor
};

struct Study {
  Problem problem;
  std::string arch;
  Device device;     ///< as its logs have it; only arch and name when they have none
  std::string label; ///< what the build calls it; empty: not known
  double weight = 1; ///< calls, say; in totals
  /// What the rounds' ratios relate to: "default", or what deepgen-measure took where that failed, which may
  /// be another arm in each log.
  std::string anchor = "default";
  std::vector<StudyTrial> trials; ///< by round and slot
  std::optional<RecordLog> final; ///< finals and hold-out of this problem alone
  Decision decision;              ///< of the finals
  std::optional<Record> vendor;
  std::optional<Speed> against_default, against_vendor; ///< of the winner
  std::string default_verdict,
      vendor_verdict; ///< as base/search/decide.h has them; "unchanged": the default itself
  std::string regime; ///< what was tuned for, where its finals say so
  std::map<std::string, RegimeSpeed> regimes; ///< "sustained", "bursts", "serial": those that were measured
  Json evidence = Json::object();             ///< what a lock entry would hold
  std::vector<LockEntry> locked;              ///< entries for this problem and device

  bool decided() const { return final && decision.found; }
  /// "improved", "unchanged" (the default stays), "default failed" (a finalist won and there is nothing to
  /// compare with), "no winner", "unfinished", "locked" (a lock has the result of an
  /// earlier search), "not searched" (in a lock alone, which tells no result)
  std::string outcome() const;
};

struct ReportInput {
  std::vector<RecordLog> logs;
  std::vector<Lock> locks;
  std::map<std::string, std::string> labels; ///< problem key to name
  bool only_labelled = false; ///< leave out the rest: what the build had before a SHAPE was changed, say
  std::map<std::string, double> weights; ///< problem key to weight; empty: all the same
  bool evidence = true; ///< Study::evidence is wanted; counting all legal configs can take a second a problem
};

/// One for each (problem, arch, device name), sorted by device and key. Throws Error on a problem that does
/// not parse.
std::vector<Study> studies_of(const ReportInput&);

/// Geometric and weighted mean and extremes of the studies' speeds against one baseline. A study whose
/// default stays counts as 1 against the default; none is left out.
struct Totals {
  size_t count = 0;
  double geomean = 1;
  double weighted = 1; ///< sum of weight x baseline's seconds, over sum of weight x winner's seconds
  double worst = 1, best = 1;
  std::string worst_problem;
  std::map<std::string, size_t> verdicts; ///< against the default, "unchanged" is one too
};

/// The studies of one device.
struct Summary {
  std::string arch, device;
  std::vector<const Study*> studies;
  std::map<std::string, size_t> outcomes;
  Totals against_default, against_vendor;
};
std::vector<Summary> summaries_of(const std::vector<Study>&);

} // namespace deepgen
