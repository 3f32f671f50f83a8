// What the strategies that learn share.
#pragma once

#include "generator/search/features.h"
#include "generator/search/strategy.h"

namespace deepgen {

/// Picks those of `candidates` that `fit` expects to be fastest, until `size` are picked. False, and nothing
/// is picked, when there is nothing to learn from or to choose.
bool pick_by_model(const SearchState&, Picker&, Regression fit, const std::vector<size_t>& candidates,
                   size_t size, const std::string& origin);

} // namespace deepgen
