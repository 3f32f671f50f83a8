// What many candidates of a search failed for alike: a result over the others alone should say so.
#pragma once

#include "base/search/record.h"

#include <string>
#include <vector>

namespace deepgen {

/// "5 of 12 candidates failed alike: unsupported: cannot ..."; empty when less than a quarter did, or only
/// one. Candidates that were correct, or that an assembler's report rejected, as is usual, are among the 12.
std::string common_failure(const std::vector<RecordLog>& logs);

} // namespace deepgen
