#include "measure/finals.h"

#include "measure/statistics.h"

namespace deepgen {
namespace {

constexpr int kFewestRounds = 11, kMostRounds = 60;

ArmResult best_of(const std::vector<ArmResult>& results, const ArmResult& anchor) {
  const ArmResult* best = nullptr;
  double least = 0;
  for (const ArmResult& r : results) {
    if (!r.timed()) continue;
    const double ratio = median(log_ratios(r, anchor));
    if (!best || ratio < least) best = &r, least = ratio;
  }
  if (best) return *best;
  return results.empty() ? ArmResult() : results.front(); // for why it failed
}

FinalsResult run_against(size_t anchor, const Field& field, const RaceOptions& options, Progress& progress) {
  std::vector<Arm> arms;
  for (size_t i = 0; i < field.finalists; ++i) arms.push_back(field.arm(i, ""));
  arms.push_back(field.arm(anchor, "the anchor again"));
  arms.insert(arms.end(), field.vendor_arms.begin(), field.vendor_arms.end());
  if (field.read_arm) arms.push_back(*field.read_arm);
  FinalsResult f;
  f.all = full_race(arms, kFewestRounds, kMostRounds, options, progress);
  const auto again = f.all.begin() + std::ptrdiff_t(field.finalists);
  f.finalists.assign(f.all.begin(), again);
  f.again = *again;
  if (field.read_arm) f.read = f.all.back();
  f.anchor = anchor_of(f.finalists);
  if (f.anchor < field.finalists)
    f.vendor =
        best_of({again + 1, again + 1 + std::ptrdiff_t(field.vendor_arms.size())}, f.finalists[f.anchor]);
  return f;
}

} // namespace

FinalsResult run_finals(const Field& field, const RaceOptions& options, Progress& progress) {
  for (size_t anchor = 0;;) {
    FinalsResult f = run_against(anchor, field, options, progress);
    if (f.anchor <= anchor || f.anchor == field.finalists) return f;
    anchor = f.anchor;
  }
}

} // namespace deepgen
