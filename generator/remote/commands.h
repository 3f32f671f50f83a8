// remote, worker, sites, status
#pragma once

namespace CLI {
class App;
}

namespace deepgen {

void add_remote_commands(CLI::App&, int& status);

} // namespace deepgen
