// Search by a regression: what it expects to be fastest comes next. It learns speeds, the best time over a
// config's, so that what failed is simply 0.
#include "generator/search/strategy_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace deepgen {
namespace {

constexpr double kModelRandomShare = 0.1; ///< of later rounds

void propose(const SearchState& state, Picker& picker, Regression fit) {
  std::vector<size_t> all(state.space.size());
  std::iota(all.begin(), all.end(), size_t(0));
  const size_t random = size_t(std::lround(kModelRandomShare * double(picker.room())));
  if (state.in.round > 0) pick_by_model(state, picker, fit, all, picker.room() - random, "model");
  picker.pick_random(picker.room());
}

} // namespace

bool pick_by_model(const SearchState& state, Picker& picker, Regression fit,
                   const std::vector<size_t>& candidates, size_t size, const std::string& origin) {
  if (!std::isfinite(state.history.best_ratio())) return false; // nothing but failures: they are all alike
  const Features features(state.space);
  Table known(features.columns());
  std::vector<float> speeds;
  for (const Trial& t : state.history.trials())
    if (t.decided) {
      known.append(features.row(t.rank));
      speeds.push_back(float(state.history.speed(t)));
    }
  std::vector<size_t> free;
  for (size_t rank : candidates)
    if (!picker.taken(rank)) free.push_back(rank);
  if (free.empty()) return false;
  picker.pick_highest(free, fit(known, speeds, features.table(free)), size, origin);
  return true;
}

void propose_gbt(const SearchState& state, Picker& picker) { propose(state, picker, boosted_trees); }

void propose_xgboost(const SearchState& state, Picker& picker) {
  require_xgboost(); // at once, not after the first round
  propose(state, picker, xgboost_trees);
}

} // namespace deepgen
