// remote, worker, sites, status
#pragma once

#include "remote/call.h"

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace deepgen {

/// Does what a command line says, messages included; the status to exit with: 1, or kHostFaultStatus for what
/// the host could not do.
using RunWords = std::function<int(const std::vector<std::string>&)>;

/// `run`: this very program, which a worker is asked to be.
void add_remote_commands(CLI::App&, int& status, const RunWords& run);

} // namespace deepgen
