// Top: the best configs of finished searches as a space of their own, to be tested again.
#pragma once

#include "base/search/record.h"
#include "base/search/search_options.h"

namespace deepgen {

/// For each problem and arch of the logs the `count` fastest correct configs by their last record, fastest
/// first, and the default config, against which a search that is restricted to them compares.
SavedSpace top_of(const std::vector<RecordLog>& logs, size_t count);

} // namespace deepgen
