// The config of a template's space that its own estimate ranks first.
#pragma once

#include "templates/core/template.h"

#include <optional>

namespace deepgen {

/// As the first of the generator's Space of this template alone; of equal costs the first by text. Nothing
/// when no config is legal.
std::optional<Config> cheapest(const Template&, const Problem&, const Device&);

} // namespace deepgen
