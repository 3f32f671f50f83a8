// Candidates for the sizes of a range that nobody is timed at: a kernel may be the best there alone.
#pragma once

#include "generator/search/search.h"

namespace deepgen {

/// Of the configs of `space` that have the tile of any, and all else as one of `chosen`, and serve the whole
/// range: those that the estimate has faster than all of `chosen` at the most sizes, and by the most, one
/// after another, at most so many; with another value of one parameter, such as a stage more, where that is
/// faster still. Nothing where sizes have several ranges.
std::vector<Choice> best_between(const SearchInput&, const Space& space, const std::vector<Choice>& chosen,
                                 size_t most);

} // namespace deepgen
