// The threads of the runtime: a small pool, or the caller's own through deepgen_set_parallel_for(). Internal.
#pragma once

#include "runtime/core/abi.h"

namespace deepgen::pool {
inline namespace DEEPGEN_ABI_NAMESPACE {

/// Runs the tasks [0, count) on the hook's or the pool's threads and returns true when all are done. False,
/// having run none, when the pool is busy with another call: that call's threads are the machine's, so the
/// caller computes alone. Hence nested and concurrent calls cannot deadlock.
bool run(int count, deepgen_task task, void* context);

/// Children of fork(2) have none of the threads; they get a new pool at need. And what the destructor does
/// depends on whether the process exits or a library is unloaded. Idempotent.
void install_handlers();

/// Whether the process exits; only after install_handlers().
bool is_exiting();

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::pool
