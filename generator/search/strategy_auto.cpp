// The default strategy. The estimates of the templates prune the space, softly, as they rank single configs
// badly and large sets well; then a regression over the times, neighbours of the fastest and random configs
// share each round.
#include "generator/search/overlap.h"
#include "generator/search/strategy_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace deepgen {
namespace {

/// A space up to this size is not pruned: on a recorded one of 2400 the best config is number 1900 by
/// estimate, and the regression reads so many in milliseconds.
constexpr size_t kSmall = 4096;
constexpr size_t kFewest = 512, kMost = 4096;
constexpr double kShare = 0.05;             ///< of the space, kept for its estimates
constexpr double kOutside = 0.05;           ///< of what is kept, more from the rest of the space
constexpr double kRandomFirst = 0.15;       ///< of round 0
constexpr double kModelShare = 0.5;         ///< of later rounds
constexpr double kAutoRandomShare = 0.0625; ///< of later rounds
constexpr size_t kParents = 4;              ///< the fastest, whose neighbours are tried
constexpr size_t kOverlaps = 2;             ///< of them, which are tried with the other overlap first
constexpr double kRival =
    0.85; ///< of the best one's speed, with which the fastest of another template is a parent too

/// What the regression may choose from: the best estimates, those of each template, some others. The same in
/// all rounds.
std::vector<size_t> pruned(const SearchState& state) {
  const Space& space = state.space;
  const size_t size = space.size(), share = size_t(std::ceil(kShare * double(size)));
  const size_t keep = size <= kSmall ? size : std::clamp(share, std::min(kFewest, size), kMost);
  const size_t families = space.families().size(), floor = keep / (2 * families);
  std::vector<size_t> kept, rest, of_family(families, 0);
  for (size_t rank = 0; rank < size; ++rank)
    if (rank < keep || of_family[space.family(rank)] < floor) {
      kept.push_back(rank);
      ++of_family[space.family(rank)];
    } else {
      rest.push_back(rank);
    }
  Random random(fnv1a("outside|" + state.in.problem.key()) ^ state.in.options.seed);
  const size_t outside = std::min(rest.size(), size_t(std::ceil(kOutside * double(keep))));
  for (size_t i = 0; i < outside; ++i) {
    std::swap(rest[i], rest[i + random.below(rest.size() - i)]);
    kept.push_back(rest[i]);
  }
  return kept;
}

size_t part(double share, size_t whole) { return size_t(std::lround(share * double(whole))); }

void first_round(const SearchState& state, Picker& picker) {
  const size_t random = picker.room() > 4 ? part(kRandomFirst, picker.room()) : 0;
  pick_spread(state, picker, picker.room() - random, "model");
  picker.pick_random(pruned(state), picker.room());
}

/// Whose neighbours to try: one template may be ahead only because the estimates have led to its best configs
/// first.
std::vector<size_t> parents(const SearchState& state) {
  std::vector<size_t> out = state.history.best(kParents);
  std::vector<bool> has(state.space.families().size(), false);
  for (size_t rank : out) has[state.space.family(rank)] = true;
  std::vector<Trial> trials = state.history.trials();
  std::stable_sort(trials.begin(), trials.end(),
                   [](const Trial& a, const Trial& b) { return a.ratio < b.ratio; });
  for (const Trial& t : trials) {
    const size_t family = state.space.family(t.rank);
    if (!std::isfinite(t.ratio) || state.history.speed(t) < kRival) break;
    if (!has[family]) out.push_back(t.rank);
    has[family] = true;
  }
  return out;
}

void pick_other_overlaps(const SearchState& state, Picker& picker, size_t size) {
  for (size_t rank : state.history.best(kOverlaps))
    if (const auto twin = other_overlap(state.space.choice(rank)); twin && picker.size() < size)
      if (const auto other = state.space.rank(*twin)) picker.pick(*other, "neighbour");
}

void later_round(const SearchState& state, Picker& picker) {
  const std::vector<size_t> candidates = pruned(state);
  const size_t random = part(kAutoRandomShare, picker.room());
  const size_t learned = part(kModelShare, picker.room() - random);
  pick_other_overlaps(state, picker, learned);
  pick_by_model(state, picker, boosted_trees, candidates, learned, "model");
  pick_neighbours(state, picker, parents(state), picker.room() - random, "neighbour");
  if (picker.size() < picker.room() - random)
    pick_by_model(state, picker, boosted_trees, candidates, picker.room() - random, "model");
  if (!std::isfinite(state.history.best_ratio())) // all failed: further away
    pick_spread(state, picker, picker.room() - random, "model");
  picker.pick_random(candidates, picker.room());
}

} // namespace

void propose_auto(const SearchState& state, Picker& picker) {
  state.in.round == 0 ? first_round(state, picker) : later_round(state, picker);
  picker.pick_random(picker.room()); // beyond what was pruned
}

} // namespace deepgen
