// Simulated annealing (Kirkpatrick, Gelatt and Vecchi, 1983) in rounds. Four walks take turns, so that a
// round's candidates are not all steps from one point. The walks are followed anew from the records.
#include "generator/search/strategy.h"

#include <algorithm>
#include <cmath>

namespace deepgen {
namespace {

constexpr size_t kWalks = 4;
constexpr double kHot = 0.15,
                 kCold = 0.002;  ///< a step that is slower by this share is accepted once in e times
constexpr double kHalfLife = 24; ///< trials until the temperature is half as high

struct Annealing {
  std::optional<size_t> at;
  double ratio = std::numeric_limits<double>::infinity();
};

/// Where the walks are after all trials. Trial i belongs to walk i mod 4; those of round 0 are starting
/// points.
std::vector<Annealing> follow(const SearchState& state) {
  std::vector<Annealing> walks(kWalks);
  const auto& trials = state.history.trials();
  Random random(fnv1a("anneal|" + state.in.problem.key() + "|" + state.in.arch) ^ state.in.options.seed);
  for (size_t i = 0; i < trials.size(); ++i) {
    Annealing& walk = walks[i % kWalks];
    const Trial& t = trials[i];
    const double temperature = std::max(kCold, kHot * std::exp2(-double(i) / kHalfLife)),
                 luck = random.unit();
    if (!std::isfinite(t.ratio)) continue;
    const bool step = t.origin == "anneal" && walk.at;
    if (t.ratio < walk.ratio || (step && luck < std::exp(-(t.ratio / walk.ratio - 1) / temperature)))
      walk = {t.rank, t.ratio};
  }
  return walks;
}

/// A legal config that differs in one parameter, then in two; nothing when none was found that is free.
std::optional<size_t> step(const Space& space, Picker& picker, size_t from) {
  constexpr int kAttempts = 200;
  const auto& parameters = space.families()[space.family(from)].parameters;
  const std::vector<uint32_t> origin = space.positions(from);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::vector<uint32_t> positions = origin;
    for (int change = 0; change < (attempt < kAttempts / 2 ? 1 : 2); ++change) {
      const size_t i = picker.random().below(positions.size());
      positions[i] = uint32_t(picker.random().below(parameters[i].values.size()));
    }
    if (auto rank = space.find(space.family(from), positions); rank && !picker.taken(*rank)) return rank;
  }
  return std::nullopt;
}

} // namespace

void propose_anneal(const SearchState& state, Picker& picker) {
  if (state.in.round == 0) return picker.pick_random(picker.room());
  const std::vector<Annealing> walks = follow(state);
  for (size_t i = state.history.trials().size(); !picker.full(); ++i) {
    const Annealing& walk = walks[i % kWalks];
    const auto next = walk.at ? step(state.space, picker, *walk.at) : std::nullopt;
    if (next)
      picker.pick(*next, "anneal");
    else
      picker.pick_random(picker.size() + 1); // nothing was timed yet, or the walk is stuck
  }
}

} // namespace deepgen
