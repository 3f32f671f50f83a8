// SearchTime: what one search may measure in all, as a workload's MINUTES have it. Its rounds end early for
// it, and its finals have what the rounds leave.
#pragma once

#include "base/json/json_fwd.h"
#include "base/kernel/regime.h"

#include <cstddef>
#include <string>
#include <vector>

namespace deepgen {

class SearchTime {
public:
  /// `most`: seconds for all rounds and the finals, but waiting; 0: no bound. `logs`: those of the rounds so
  /// far, which say what they have taken.
  SearchTime(double most, const std::vector<std::string>& logs);

  bool bounded() const { return most_ > 0; }
  double most() const { return most_; }
  double left() const; ///< seconds; infinite without a bound
  /// Of a round, when the finals are to have so many seconds.
  double left_but(double finals) const;
  double preparing() const { return preparing_; } ///< operands, in a round
  bool cut() const { return cut_; } ///< whether a round has left candidates out, as its time was over

private:
  double most_ = 0, spent_ = 0, preparing_ = 0;
  bool cut_ = false;
};

/// Who takes part in finals that end in so many seconds with a decision.
struct Starters {
  size_t finalists = 0; ///< the first ones; 0: there is no time for the fewest rounds of two
  bool vendor = false;
  double needed = 0; ///< seconds, for these, or for two
};
/// What finals time beside the finalists, and how.
struct FinalsField {
  bool vendor = false;    ///< a vendor's library takes part
  double asking = 0;      ///< seconds until it has told its algorithms
  size_t algorithms = 1;  ///< of which each is an arm
  double starting = 0;    ///< seconds ahead of the finals and of the hold-out together: kernels, heat
  double rest = 0;        ///< seconds ahead of a sample in bursts
  double vendor_rest = 0; ///< seconds behind each slice of the vendor's
  TunedFor regime = TunedFor::sustained;
  size_t extra = 0; ///< further regimes of the hold-out, for evidence
};
/// `calls`: seconds of a call of each finalist; `preparing`: of their operands, which are made twice. The
/// vendor's library stays out before the second finalist does.
Starters starters_within(double seconds, double preparing, const std::vector<double>& calls,
                         const FinalsField&);

/// Marks a log which decides nothing as its search had no more time: the default config stays, and nothing is
/// repeated.
void note_out_of_time(Json& environment, const SearchTime&, const std::string& why);

} // namespace deepgen
