// What the commands of `deepgen remote` have in common.
#pragma once

#include <string>

namespace deepgen {

struct RemoteOptions {
  std::string sites, site; ///< sites.json and which of them
  std::string board;       ///< folder of the build tree's board; empty: none
  std::string measurer;    ///< `deepgen-measure` here; empty: the one beside this program
};

/// What this `deepgen` is for kernels of an arch: of the assemblers, that of the arch alone.
std::string compile_worker_id(const std::string& arch);

} // namespace deepgen
