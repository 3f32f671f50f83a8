// `deepgen remote -- compile ...`: kernels that a site's hosts compile, where the cache does not have them.
#pragma once

#include "generator/remote/remote_options.h"

#include <vector>

namespace deepgen {

/// `words`: a `compile` command with --plan, --finalist or --choice. Writes the files that it would have
/// written.
void compile_remotely(const RemoteOptions&, const std::vector<std::string>& words);

} // namespace deepgen
