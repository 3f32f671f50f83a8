#include "measure/commands/search_time.h"

#include "base/search/record.h"
#include "measure/race/finals.h"

#include <algorithm>
#include <cstdio>
#include <limits>

namespace deepgen {
namespace {

// What finals take beside their samples, and samples that are taken twice as something disturbed them.
constexpr double kStart = 0.5, kTwice = 1.3;

/// Short calls are repeated to fill a sample.
double sample_of_call(double seconds) { return std::max(seconds, RaceOptions().sample_seconds); }

double needed_for(size_t finalists, double preparing, const std::vector<double>& calls, bool vendor) {
  double all = 0, longest = 0;
  for (size_t i = 0; i < finalists; ++i)
    all += sample_of_call(calls[i]), longest = std::max(longest, sample_of_call(calls[i]));
  const double anchor = sample_of_call(calls.front()), library = vendor ? longest : 0;
  return kStart + 2 * preparing +
         kTwice * (kFewestFinalRounds * (all + anchor + library) +
                   kFewestOfHoldout * (2 * anchor + longest + library));
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

Starters starters_within(double seconds, double preparing, const std::vector<double>& calls, bool vendor) {
  constexpr size_t kFewest = 2;
  if (calls.size() < kFewest) return {calls.size(), vendor, 0}; // nothing to decide
  for (size_t n = calls.size(); n >= kFewest; --n)
    if (const double needed = needed_for(n, preparing, calls, vendor); needed <= seconds)
      return {n, vendor, needed};
  const double needed = needed_for(kFewest, preparing, calls, false);
  return {needed <= seconds ? kFewest : 0, false, needed};
}

void note_out_of_time(Json& environment, const SearchTime& time, const std::string& why) {
  char share[60];
  std::snprintf(share, sizeof share, "; its share of MINUTES is %.3g s", time.most());
  environment["out_of_time"] = why + share;
}

} // namespace deepgen
