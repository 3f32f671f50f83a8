// Candidates for the sizes of a range that nobody is timed at: a kernel may be the best there alone.
#pragma once

#include "generator/search/search.h"

namespace deepgen {

/// Of the configs that have any tile of the template, and all else as one of `chosen`, serve the whole range
/// and are left by the options: those that the estimate has faster than all of `chosen` at the most sizes,
/// and by the most, one after another, at most so many; with another value of one parameter, such as a stage
/// more, where that is faster still. Nothing where sizes have several ranges.
std::vector<Choice> best_between(const SearchInput&, const std::vector<Choice>& chosen, size_t most);

} // namespace deepgen
