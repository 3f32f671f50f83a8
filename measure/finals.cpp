#include "measure/finals.h"

#include "measure/statistics.h"

namespace deepgen {
namespace {

constexpr int kFewestRounds = 11;
constexpr int kFewestOfHoldout = 7; ///< for an interval, where a call takes seconds

std::optional<size_t> best_of(const std::vector<ArmResult>& results, const ArmResult& anchor) {
  std::optional<size_t> best;
  double least = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].timed()) continue;
    const double ratio = median(log_ratios(results[i], anchor));
    if (!best || ratio < least) best = i, least = ratio;
  }
  return best;
}

FinalsResult run_against(size_t anchor, const Field& field, RaceOptions options, Progress& progress) {
  std::vector<Arm> arms;
  for (size_t i = 0; i < field.finalists; ++i) arms.push_back(field.arm(i, ""));
  arms.push_back(field.arm(anchor, "the anchor again"));
  arms.insert(arms.end(), field.vendor_arms.begin(), field.vendor_arms.end());
  options.fastest_from = field.finalists + 1, options.fastest_to = arms.size();
  if (field.read_arm) arms.push_back(*field.read_arm);
  FinalsResult f;
  f.all = full_race(arms, kFewestRounds, options.most_rounds, options, progress);
  const auto again = f.all.begin() + std::ptrdiff_t(field.finalists);
  f.finalists.assign(f.all.begin(), again);
  f.again = *again;
  if (field.read_arm) f.read = f.all.back();
  f.anchor = anchor_of(f.finalists);
  const std::vector<ArmResult> vendor(again + 1, again + 1 + std::ptrdiff_t(field.vendor_arms.size()));
  if (f.anchor < field.finalists) f.vendor_arm = best_of(vendor, f.finalists[f.anchor]);
  if (!vendor.empty()) f.vendor = vendor[f.vendor_arm.value_or(0)]; // the first one: for why it failed
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

HoldoutResult run_holdout(const Field& field, size_t anchor, size_t winner, std::optional<size_t> vendor_arm,
                          const RaceOptions& options, Progress& progress) {
  std::vector<Arm> arms = {field.arm(anchor, ""), field.arm(anchor, "the anchor again")};
  if (winner != anchor) arms.push_back(field.arm(winner, ""));
  if (vendor_arm) arms.push_back(field.vendor_arms[*vendor_arm]);
  HoldoutResult h;
  h.all = full_race(arms, kFewestOfHoldout, options.most_rounds, options, progress);
  h.anchor = h.all[0], h.again = h.all[1];
  h.winner = winner == anchor ? h.anchor : h.all[2];
  if (vendor_arm) h.vendor = h.all.back();
  return h;
}

} // namespace deepgen
