#include "measure/commands/search_time.h"

#include "base/search/record.h"
#include "measure/race/finals.h"
#include "measure/race/slices.h"

#include <algorithm>
#include <cstdio>
#include <limits>

namespace deepgen {
namespace {

// What finals take beside their samples, and samples that are taken twice as something disturbed them.
constexpr double kStart = 0.5, kTwice = 1.3;

/// Short calls are repeated to fill a sample.
double sample_of_call(double seconds) { return std::max(seconds, RaceOptions().sample_seconds); }

/// Seconds of a round in which each arm has one sample.
struct RoundTimes {
  double finals = 0, chosen = 0;    ///< of all arms; of those of the hold-out
  size_t arms = 0, chosen_arms = 0; ///< how many these are
  double bursts = 0;                ///< of the finals, whose bursts leave out most of the vendor's algorithms
  size_t burst_arms = 0;
};

RoundTimes rounds_of(size_t finalists, const std::vector<double>& calls, const FinalsField& f) {
  constexpr size_t kVendorBursts = 2; // run_finals()
  const size_t vendors = f.vendor ? f.algorithms : 0, in_bursts = std::min(vendors, kVendorBursts);
  const double anchor = sample_of_call(calls.front());
  double all = anchor, longest = 0; // the anchor is there twice
  for (size_t i = 0; i < finalists; ++i)
    all += sample_of_call(calls[i]), longest = std::max(longest, sample_of_call(calls[i]));
  RoundTimes t;
  t.arms = finalists + 1 + vendors, t.burst_arms = finalists + 1 + in_bursts;
  t.chosen_arms = 3 + (f.vendor ? 1 : 0);
  t.finals = all + double(vendors) * longest, t.bursts = all + double(in_bursts) * longest;
  t.chosen = 2 * anchor + longest + (f.vendor ? longest : 0);
  return t;
}

/// Of a round: all that is timed has as many as the fastest.
double slices_of(const std::vector<double>& calls) {
  const double sample = RaceOptions().sample_seconds, fastest = *std::min_element(calls.begin(), calls.end());
  return std::clamp(sample / std::max(fastest, sample / kMostSlices), 1.0, double(kMostSlices));
}

/// The fewest rounds of all races, sustained and in bursts.
double needed_for(size_t finalists, double preparing, const std::vector<double>& calls,
                  const FinalsField& f) {
  constexpr int kFewestInBursts = 2 + 4; // finals_in_two(): ahead of the cuts and behind
  const RoundTimes t = rounds_of(finalists, calls, f);
  const double finals_rest = double(t.arms) * f.rest, chosen_rest = double(t.chosen_arms) * f.rest;
  const bool burst = f.regime == TunedFor::burst, both = f.regime == TunedFor::balanced;
  double rounds = kFewestFinalRounds * (t.finals + (burst ? finals_rest : 0)) +
                  kFewestOfHoldout * (t.chosen + (burst ? chosen_rest : 0));
  if (both)
    rounds += kFewestInBursts * (t.bursts + double(t.burst_arms) * f.rest) +
              kFewestOfHoldout * (t.chosen + chosen_rest);
  if (both && f.extra > 0) rounds += kFewestSerialRounds * t.finals;
  if (f.vendor) rounds += (kFewestFinalRounds + kFewestOfHoldout) * slices_of(calls) * f.vendor_rest;
  rounds += double(f.extra + (burst ? 1 : 0)) * kFewestOfHoldout * t.chosen; // of bursts, sustained beside
  return kStart + 2 * preparing + f.starting + (f.vendor ? f.asking : 0) + kTwice * rounds;
}

} // namespace

SearchTime::SearchTime(double most, const std::vector<std::string>& logs) : most_(most) {
  if (!bounded()) return;
  for (const std::string& path : logs) {
    const Json& environment = RecordLog::read(path).environment;
    cut_ |= environment.contains("cut");
    if (const auto spent = environment.find("spent"); spent != environment.end() && spent->is_object())
      for (const auto& [what, seconds] : spent->items())
        if (what != "waiting" && seconds.is_number()) {
          spent_ += seconds.get<double>();
          if (what == "preparing") preparing_ = std::max(preparing_, seconds.get<double>());
        }
  }
}

double SearchTime::left() const {
  return bounded() ? std::max(0.0, most_ - spent_) : std::numeric_limits<double>::infinity();
}

double SearchTime::left_but(double finals) const { return std::max(0.0, left() - finals); }

Starters starters_within(double seconds, double preparing, const std::vector<double>& calls,
                         const FinalsField& field) {
  constexpr size_t kFewest = 2;
  if (calls.size() < kFewest) return {calls.size(), field.vendor, 0}; // nothing to decide
  for (size_t n = calls.size(); n >= kFewest; --n)
    if (const double needed = needed_for(n, preparing, calls, field); needed <= seconds)
      return {n, field.vendor, needed};
  FinalsField alone = field;
  alone.vendor = false;
  const double needed = needed_for(kFewest, preparing, calls, alone);
  return {needed <= seconds ? kFewest : 0, false, needed};
}

void note_out_of_time(Json& environment, const SearchTime& time, const std::string& why) {
  char share[60];
  std::snprintf(share, sizeof share, "; its share of MINUTES is %.3g s", time.most());
  environment["out_of_time"] = why + share;
}

} // namespace deepgen
