// The worker of a host with devices, which `deepgen remote` talks to.
#pragma once

namespace deepgen {

/// Serves one request; the status to exit with.
int serve_measuring();

} // namespace deepgen
