// Json, declared alone: who looks inside one includes base/json/json.h.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace deepgen {

using Json = nlohmann::ordered_json;

} // namespace deepgen
