// EarlierRuns: what earlier runs, of any build folder, found out about the same code.
//
// A verdict holds wherever the code and the arch are the same, a time only on the same kind of device, under
// the same conditions and against the same anchor. What the moment decides is never kept: timeouts, crashes,
// what could not be run, what was dropped, and anything from a run that was disturbed.
#pragma once

#include "base/files/cache.h"
#include "base/json/json.h"
#include "measure/gpu/cuda_bench.h"
#include "measure/race/candidates.h"
#include "measure/race/options.h"

namespace deepgen {

/// What this program measures by: verdicts and times of another one are not the same.
std::string measure_id();

class EarlierRuns {
public:
  EarlierRuns(CacheSettings, const Device&, const cuda::Surroundings&, const MeasureOptions&);

  /// Those of `open` whose verdict is not known; bad ones that are known are decided.
  std::vector<Candidate*> unverified(const std::vector<Candidate*>& open);
  void keep_verdicts(const std::vector<Candidate*>& verified);

  /// Decides those whose time against the default, the first of `open`, is known. Returns the others behind
  /// the default; nothing when there are none.
  std::vector<Candidate*> untimed(const std::vector<Candidate*>& open);
  /// Decides those whose time against the anchor is known.
  void recall(const std::vector<Candidate*>& list, const Candidate& anchor);
  /// Times of an undisturbed run, relative to the first one's.
  void keep_times(const std::vector<Candidate*>& timed);

private:
  std::string verdict_key(const Candidate&) const;
  std::string time_key(const Candidate&, const Candidate& anchor) const;
  bool recall_time(Candidate&, const Candidate& anchor);

  Cache cache_;
  Json verdicts_hold_; ///< what verdicts depend on beside the code
  Json times_hold_;    ///< what times do
  std::string driver_; ///< of a GPU: compiles what has no code
};

} // namespace deepgen
