#include "measure/race/finals.h"

#include "measure/race/statistics.h"

#include <algorithm>

namespace deepgen {
namespace {

constexpr double kExtraSeconds = 3;
constexpr int kMostOfExtra = 41;
constexpr double kAlike = 0.01;   ///< no arm is cut for less
constexpr size_t kVendorArms = 8; ///< of the vendor's that go on

std::optional<size_t> best_of(const std::vector<ArmResult>& results, const ArmResult& anchor) {
  std::optional<size_t> best;
  double least = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].timed() || was_cut(results[i], anchor)) continue;
    const double ratio = median(log_ratios(results[i], anchor));
    if (!best || ratio < least) best = i, least = ratio;
  }
  return best;
}

FinalsResult run_against(size_t anchor, const Field& field, double least_noise, RaceOptions options,
                         Progress& progress) {
  std::vector<Arm> arms;
  for (size_t i = 0; i < field.finalists; ++i) arms.push_back(field.arm(i, ""));
  arms.push_back(field.arm(anchor, "the anchor again"));
  arms.insert(arms.end(), field.vendor_arms.begin(), field.vendor_arms.end());
  // The first rounds are seconds in which the machine may favour one as much as the other's neighbour: hence
  // twice.
  const double behind = std::max(kAlike, 2 * least_noise);
  options.cuts = {{0, field.finalists, behind}, {field.finalists + 1, arms.size(), behind, kVendorArms}};
  if (field.read_arm) arms.push_back(*field.read_arm);
  FinalsResult f;
  f.all = full_race(arms, kFewestFinalRounds, options.most_rounds, options, progress);
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

/// The anchor twice, the winner unless it is the anchor, the vendor.
std::vector<Arm> chosen_arms(const Field& field, size_t anchor, size_t winner,
                             std::optional<size_t> vendor_arm) {
  std::vector<Arm> arms = {field.arm(anchor, ""), field.arm(anchor, "the anchor again")};
  if (winner != anchor) arms.push_back(field.arm(winner, ""));
  if (vendor_arm) arms.push_back(field.vendor_arms[*vendor_arm]);
  return arms;
}

ChosenResult chosen_result(std::vector<ArmResult> all, bool anchor_won, bool has_vendor) {
  ChosenResult c;
  c.anchor = all[0], c.again = all[1];
  c.winner = all[anchor_won ? 0 : 2];
  if (has_vendor) c.vendor = all.back();
  c.all = std::move(all);
  return c;
}

Arm in_regime(const Arm& arm, Regime regime) {
  Arm a;
  a.name = arm.name + " (" + to_string(regime) + ")";
  a.make_sampler = [make = arm.make_in_regime, regime] { return make(regime); };
  return a;
}

} // namespace

FinalsResult run_finals(const Field& field, const RaceOptions& options, Progress& progress,
                        double least_noise) {
  for (size_t anchor = 0;;) {
    FinalsResult f = run_against(anchor, field, least_noise, options, progress);
    if (f.anchor <= anchor || f.anchor == field.finalists) return f;
    anchor = f.anchor;
  }
}

HoldoutResult run_holdout(const Field& field, size_t anchor, size_t winner, std::optional<size_t> vendor_arm,
                          const std::vector<Regime>& extra, const RaceOptions& options, Progress& progress) {
  const std::vector<Arm> chosen = chosen_arms(field, anchor, winner, vendor_arm);
  std::vector<Arm> arms = chosen;
  std::vector<Phase> phases = {{0, arms.size(), kFewestOfHoldout, options.most_rounds, 0}};
  for (Regime regime : extra) {
    for (const Arm& arm : chosen) arms.push_back(in_regime(arm, regime));
    phases.push_back(
        {arms.size() - chosen.size(), arms.size(), kFewestOfHoldout, kMostOfExtra, kExtraSeconds});
  }
  const std::vector<ArmResult> all = phased_race(arms, phases, options, progress);
  const auto result_of = [&](const Phase& phase) {
    return chosen_result({all.begin() + std::ptrdiff_t(phase.from), all.begin() + std::ptrdiff_t(phase.to)},
                         winner == anchor, vendor_arm.has_value());
  };
  HoldoutResult h{result_of(phases[0]), {}};
  for (size_t i = 0; i < extra.size(); ++i) h.extra.emplace(extra[i], result_of(phases[i + 1]));
  return h;
}

} // namespace deepgen
