// Work of the host itself, beside kernels: inputs and references.
#pragma once

#include <cstdint>
#include <functional>

namespace deepgen {

/// Calls task(i) for each i in [0, count), on as many threads as the process has CPUs, at most 16; all have
/// ended when it returns. What a task throws passes through, of the first that does.
void on_host_threads(int64_t count, const std::function<void(int64_t)>& task);

} // namespace deepgen
