// Whether a kernel begins before its predecessor ends (the parameter `pdl`) is in no estimate, and changes
// times by up to a quarter, either way (benchmarks/gpu/edges.md). So the fastest are tried the other way.
#pragma once

#include "base/kernel/config.h"

#include <optional>

namespace deepgen {

/// The same kernel, which begins early where `choice` does not, and the reverse. Nothing where the template
/// has no such parameter.
std::optional<Choice> other_overlap(const Choice&);

} // namespace deepgen
