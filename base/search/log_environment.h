// What a record log tells of its surroundings: of RecordLog::environment, the fields that somebody reads.
#pragma once

#include "base/json/json.h"

namespace deepgen {

/// Throws Error unless each of them that is there is what deepgen-measure writes. Others may be anything.
void check_environment(const Json& environment, const std::string& where);

} // namespace deepgen
