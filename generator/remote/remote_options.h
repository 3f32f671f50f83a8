// What the commands of `deepgen remote` have in common.
#pragma once

#include <string>

namespace deepgen {

struct RemoteOptions {
  std::string sites, site; ///< sites.json and which of them
  std::string board;       ///< folder of the build tree's board; empty: none
  std::string measurer;    ///< `deepgen-measure` here; empty: the one beside this program
};

} // namespace deepgen
