// How many CPUs this process may use at a time. Internal.
#pragma once

#include "runtime/core/abi.h"

namespace deepgen::cpus {
inline namespace DEEPGEN_ABI_NAMESPACE {

/// Those of the affinity mask, or fewer where a quota of a cgroup allows fewer: at least one.
int usable();

/// What the quotas of the cgroups in `memberships`, a file as /proc/self/cgroup, allow, and of those that
/// hold them, of which `mounts` has the controllers, as /sys/fs/cgroup. A fraction of a CPU is none, as
/// threads that wait for each other would wait for the one that is held back; but one is the least. 0: no
/// limit.
int of_quota(const char* memberships, const char* mounts);

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::cpus
