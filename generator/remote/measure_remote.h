// `deepgen remote -- run|playoff|verify|devices ...`: commands of `deepgen-measure` on a site's devices.
#pragma once

#include "generator/remote/remote_options.h"

#include <vector>

namespace deepgen {

/// Whether `deepgen-measure` has the command, and workers run it.
bool is_measuring(const std::string& command);
/// Writes the file that the command would have written.
void measure_remotely(const RemoteOptions&, const std::vector<std::string>& words);

/// `deepgen-measure` on this host, of which a site's must be equal.
std::string measurer_here(const RemoteOptions&);
std::string measure_worker_id(const std::string& measurer);

} // namespace deepgen
