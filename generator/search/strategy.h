// Strategies: ways to choose what a search tries next from what it has measured. Each is a function without a
// memory: everything that it knows about earlier rounds is in their records.
#pragma once

#include "generator/search/picker.h"

namespace deepgen {

struct SearchState {
  const Space& space;
  const SearchInput& in;
  const History& history;
};

struct Strategy {
  const char* name;
  const char* what; ///< one line for people
  /// Fills the picker, which in round 0 holds the default and the incumbent already. Leaves room only when
  /// the space is used up.
  void (*propose)(const SearchState&, Picker&);
};

/// The registered ones; the first is the default.
const std::vector<Strategy>& strategies();
/// Throws Error that lists the known names.
const Strategy& find_strategy(const std::string& name);

void propose_auto(const SearchState&, Picker&);
void propose_grid(const SearchState&, Picker&);
void propose_random(const SearchState&, Picker&);
void propose_anneal(const SearchState&, Picker&);
void propose_genetic(const SearchState&, Picker&);
void propose_gbt(const SearchState&, Picker&);
void propose_xgboost(const SearchState&, Picker&);

/// The space's best estimates, but few of each stratum and no two that are alike in all but one parameter: an
/// estimate ranks whole regions wrongly, and its first hundred are often one region. Each template gets some.
void pick_spread(const SearchState&, Picker&, size_t size, const std::string& origin);
/// Configs that differ from these in one parameter, then in two, in turns, so that the very best does not use
/// up the round; until `size` are picked.
void pick_neighbours(const SearchState&, Picker&, const std::vector<size_t>& parents, size_t size,
                     const std::string& origin);

} // namespace deepgen
