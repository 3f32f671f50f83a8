#include "generator/search/strategy.h"

#include "base/text/error.h"

namespace deepgen {
namespace {

void fill_in_order(const SearchState& state, Picker& picker, const std::string& origin) {
  for (size_t rank = 0; rank < state.space.size() && !picker.full(); ++rank) picker.pick(rank, origin);
}

} // namespace

const std::vector<Strategy>& strategies() {
  static const std::vector<Strategy> all = {
      {"auto",
       "the best estimates first, then what a model of the times, and neighbours of the best, promise",
       propose_auto},
      {"grid", "every config, the best estimate first", propose_grid},
      {"random", "every config is equally likely", propose_random},
      {"anneal", "simulated annealing: four walks that accept ever less of what is slower", propose_anneal},
      {"genetic", "genetic algorithm: crosses and mutates the fastest", propose_genetic},
      {"gbt", "gradient-boosted trees over the times, from a random start", propose_gbt},
      {"xgboost", "the same with libxgboost, where deepgen was built with it", propose_xgboost},
  };
  return all;
}

const Strategy& find_strategy(const std::string& name) {
  std::string names;
  for (const Strategy& s : strategies()) {
    if (s.name == name) return s;
    names += (names.empty() ? "" : ", ") + std::string(s.name);
  }
  throw Error("unknown strategy '" + name + "'", "strategy", "", "use one of: " + names);
}

void propose_grid(const SearchState& state, Picker& picker) { fill_in_order(state, picker, "grid"); }

void propose_random(const SearchState&, Picker& picker) { picker.pick_random(picker.room()); }

} // namespace deepgen
