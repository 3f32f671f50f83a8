// The config of a template's space that its own estimate ranks first.
#pragma once

#include "templates/core/template.h"

#include <optional>

namespace deepgen {

/// As the first of the generator's Space of this template alone; of equal costs the first by text. Nothing
/// when no config is legal.
std::optional<Config> cheapest(const Template&, const Problem&, const Device&);

/// What a fallback is chosen for: caches that most CPUs of the level have. A fixed one, so that a library's
/// bytes do not depend on where it is built.
Device modest_cpu(int64_t level);

} // namespace deepgen
