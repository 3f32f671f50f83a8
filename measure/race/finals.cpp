#include "measure/race/finals.h"

#include "measure/race/statistics.h"
#include "measure/race/two_regimes.h"

#include <algorithm>

namespace deepgen {
namespace {

constexpr double kExtraSeconds = 3;
constexpr double kBurstSeconds = 2.2; ///< of the finals
constexpr int kBurstRounds = 3, kLastBurstRounds = 7;
constexpr size_t kVendorBursts = 2; ///< of the vendor's arms that are timed in bursts
constexpr double kAlike = 0.01;     ///< no arm is cut for less
constexpr size_t kVendorArms = 8;   ///< of the vendor's that go on

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

FinalsPart part_of(std::vector<ArmResult> all, size_t finalists) {
  FinalsPart f;
  const auto again = all.begin() + std::ptrdiff_t(finalists);
  f.finalists.assign(all.begin(), again);
  f.again = *again;
  f.all = std::move(all);
  return f;
}

/// The vendor's arm that is best in the mean of both regimes.
std::optional<size_t> best_of_both(const std::vector<ArmResult>& sustained,
                                   const std::vector<ArmResult>& bursts, const ArmResult& anchor,
                                   const ArmResult& anchor_in_bursts) {
  std::optional<size_t> best;
  double least = 0;
  for (size_t i = 0; i < sustained.size(); ++i) {
    if (!sustained[i].timed() || !bursts[i].timed() || was_cut(sustained[i], anchor)) continue;
    const double sum =
        median(log_ratios(sustained[i], anchor)) + median(log_ratios(bursts[i], anchor_in_bursts));
    if (!best || sum < least) best = i, least = sum;
  }
  return best;
}

/// Fills in the bursts of `f`, and the vendor's arms as both regimes have them.
void add_bursts(FinalsResult& f, std::vector<ArmResult> all, const std::vector<ArmResult>& vendor) {
  const size_t finalists = f.finalists.size();
  f.bursts = part_of(std::move(all), finalists);
  const auto first = f.bursts->all.begin() + std::ptrdiff_t(finalists + 1);
  const std::vector<ArmResult> in_bursts(first, first + std::ptrdiff_t(vendor.size()));
  if (f.anchor >= finalists || !f.bursts->finalists[f.anchor].timed()) return;
  const ArmResult& anchor = f.bursts->finalists[f.anchor];
  if (const auto best = best_of(in_bursts, anchor)) f.bursts->vendor = in_bursts[*best];
  if (const auto best = best_of_both(vendor, in_bursts, f.finalists[f.anchor], anchor)) f.vendor_arm = best;
}

FinalsResult run_against(size_t anchor, const Field& field, double least_noise, RaceOptions options,
                         Progress& progress, TunedFor regime) {
  std::vector<Arm> arms;
  for (size_t i = 0; i < field.finalists; ++i) arms.push_back(field.arm(i, ""));
  arms.push_back(field.arm(anchor, "the anchor again"));
  arms.insert(arms.end(), field.vendor_arms.begin(), field.vendor_arms.end());
  // The first rounds are seconds in which the machine may favour one as much as the other's neighbour: hence
  // twice.
  const double behind = std::max(kAlike, 2 * least_noise);
  options.cuts = {{0, field.finalists, behind}, {field.finalists + 1, arms.size(), behind, kVendorArms}};
  Bursts bursts{{},
                {{field.finalists + 1, arms.size(), 0, kVendorBursts}},
                kBurstRounds,
                kLastBurstRounds,
                kBurstSeconds};
  if (regime == TunedFor::balanced)
    for (const Arm& arm : arms) bursts.arms.push_back(in_regime(arm, Regime::bursts));
  if (field.read_arm) arms.push_back(*field.read_arm);
  const bool both = !bursts.arms.empty();
  InTwo all;
  if (both)
    all = finals_in_two(arms, bursts, kFewestFinalRounds, options, progress);
  else
    all.first = full_race(arms, kFewestFinalRounds, options.most_rounds, options, progress);
  FinalsResult f{part_of(std::move(all.first), field.finalists), {}, 0, {}, {}};
  if (field.read_arm) f.read = f.all.back();
  f.anchor = anchor_of(f.finalists);
  const auto first = f.all.begin() + std::ptrdiff_t(field.finalists + 1);
  const std::vector<ArmResult> vendor(first, first + std::ptrdiff_t(field.vendor_arms.size()));
  if (f.anchor < field.finalists) f.vendor_arm = best_of(vendor, f.finalists[f.anchor]);
  if (!vendor.empty()) f.vendor = vendor[f.vendor_arm.value_or(0)]; // the first one: for why it failed
  if (both) add_bursts(f, std::move(all.bursts), vendor);
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

} // namespace

FinalsResult run_finals(const Field& field, const RaceOptions& options, Progress& progress,
                        double least_noise, TunedFor regime) {
  for (size_t anchor = 0;;) {
    FinalsResult f = run_against(anchor, field, least_noise, options, progress, regime);
    if (f.anchor <= anchor || f.anchor == field.finalists) return f;
    anchor = f.anchor;
  }
}

HoldoutResult run_holdout(const Field& field, size_t anchor, size_t winner, std::optional<size_t> vendor_arm,
                          const std::vector<Regime>& extra, const RaceOptions& options, Progress& progress,
                          int extra_rounds) {
  const std::vector<Arm> chosen = chosen_arms(field, anchor, winner, vendor_arm);
  std::vector<Arm> arms = chosen;
  std::vector<Phase> phases = {{0, arms.size(), kFewestOfHoldout, options.most_rounds, 0}};
  for (Regime regime : extra) {
    for (const Arm& arm : chosen) arms.push_back(in_regime(arm, regime));
    phases.push_back(
        {arms.size() - chosen.size(), arms.size(), kFewestOfHoldout, extra_rounds, kExtraSeconds});
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
