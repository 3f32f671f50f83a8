// Merging locks: a faster entry is never replaced by a slower one.
#pragma once

#include "generator/lock/lock.h"

namespace deepgen {

/// What becomes of an entry of another lock.
enum class MergeOutcome {
  added,     ///< there was none for its problem, arch and device
  same,      ///< the decision is there already
  replaced,  ///< it is faster beyond the noise, or the one that was there is stale
  kept,      ///< the one that was there is at least as fast, as far as the noise tells
  undecided, ///< nothing says which is faster: the one that was there stays
  forced,    ///< it was taken whatever the evidence says
  stale      ///< it cannot be built here
};
std::string text_of(MergeOutcome); ///< a word

enum class MergeForce {
  none,
  ours,   ///< entries that are there stay
  theirs, ///< entries of the other lock are taken
};

struct MergedEntry {
  LockEntry entry; ///< of the other lock
  MergeOutcome outcome;
  std::string why; ///< what the evidence says
  bool taken() const {
    return outcome == MergeOutcome::added || outcome == MergeOutcome::replaced ||
           outcome == MergeOutcome::forced;
  }
};

/// One result for each entry of `other`, in its order; the lock has those that are taken.
std::vector<MergedEntry> merge_locks(Lock& lock, const Lock& other, MergeForce force);

} // namespace deepgen
