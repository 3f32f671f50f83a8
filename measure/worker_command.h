// The worker of a host with devices, which `deepgen remote` talks to.
#pragma once

namespace deepgen {

/// Serves one request, or prints what this worker is; the status to exit with.
int serve_measuring(bool print_id);

} // namespace deepgen
