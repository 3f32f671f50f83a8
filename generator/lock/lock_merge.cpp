#include "generator/lock/lock_merge.h"

#include "base/search/decide.h"
#include "generator/lock/evidence_ratio.h"

namespace deepgen {
namespace {

const LockEntry* same_place(const Lock& lock, const LockEntry& e) {
  for (const LockEntry* x : lock.find_all(e.problem, e.arch))
    if (x->device.name == e.device.name && x->device.isa == e.device.isa) return x;
  return nullptr;
}

bool is_no_slower_than_vendor(const LockEntry& e) {
  const std::optional<EvidenceRatio> ratio = ratio_to_vendor(e);
  return ratio && verdict(ratio->low, ratio->high, ratio->noise) != "loss";
}

/// Of `theirs` against the one that is there.
MergedEntry decide_merge(const LockEntry& ours, const LockEntry& theirs, MergeForce force) {
  const std::optional<EvidenceRatio> ratio = ratio_of(theirs, ours);
  const std::string words = ratio ? text_of(*ratio) : why_no_ratio(theirs, ours);
  if (force == MergeForce::theirs) return {theirs, MergeOutcome::forced, words};
  if (force == MergeForce::ours) return {theirs, MergeOutcome::kept, words};
  if (const std::string stale = why_stale(ours); !stale.empty())
    return {theirs, MergeOutcome::replaced, "the one that was there is stale: " + first_line(stale)};
  if (!ratio) return {theirs, MergeOutcome::undecided, words};
  const bool faster = is_win(*ratio);
  if (faster && ours.vendor && !theirs.vendor && !is_no_slower_than_vendor(theirs))
    return {theirs, MergeOutcome::kept,
            words + "; but " + ours.vendor->library +
                ", which the one that was there falls back on, is faster"};
  return {theirs, faster ? MergeOutcome::replaced : MergeOutcome::kept, words};
}

} // namespace

std::string text_of(MergeOutcome outcome) {
  switch (outcome) {
  case MergeOutcome::added:
    return "added";
  case MergeOutcome::same:
    return "same";
  case MergeOutcome::replaced:
    return "replaced";
  case MergeOutcome::kept:
    return "kept";
  case MergeOutcome::undecided:
    return "undecided";
  case MergeOutcome::forced:
    return "forced";
  case MergeOutcome::stale:
    return "stale";
  }
  return "";
}

std::vector<MergedEntry> merge_locks(Lock& lock, const Lock& other, MergeForce force) {
  std::vector<MergedEntry> merged;
  for (const LockEntry& e : other.entries()) {
    const LockEntry* ours = same_place(lock, e);
    if (ours && ours->agrees_with(e))
      merged.push_back({e, MergeOutcome::same, ""});
    else if (const std::string stale = why_stale(e); !stale.empty())
      merged.push_back({e, MergeOutcome::stale, first_line(stale)});
    else if (!ours)
      merged.push_back({e, MergeOutcome::added, ""});
    else
      merged.push_back(decide_merge(*ours, e, force));
    if (merged.back().taken()) lock.put(e);
  }
  return merged;
}

} // namespace deepgen
