// `deepgen sites`: what a sites.json says, and whether its workers start.
#pragma once

#include "generator/remote/remote_options.h"

namespace deepgen {

/// Prints a line a site; with `probe` a line a task. 0 when all is well.
int show_sites(const RemoteOptions&, bool probe);

} // namespace deepgen
