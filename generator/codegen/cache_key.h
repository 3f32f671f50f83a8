// What a compiled kernel depends on, as its key in the cache.
#pragma once

#include "base/kernel/kernel.h"

namespace deepgen {

/// Of what compile_candidate() makes of the same arguments. Device facts are not in it: a config's legality
/// depends on them, the code of a legal config does not.
std::string kernel_cache_key(const Problem&, const std::string& arch, const Choice&, bool awkward,
                             bool fallbacks, bool reject);
/// 0 when there is no such template, which compiling finds out.
int64_t revision_of(const Problem&, const Choice&);
/// Whether compiling again would give the same: not what ran out of time or memory.
bool worth_caching(const KernelFile&);

} // namespace deepgen
