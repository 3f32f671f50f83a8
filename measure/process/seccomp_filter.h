// The system calls that a process which only computes may make.
#pragma once

namespace deepgen::sandbox {

/// From here on this process, and threads that it starts, can write to `answers` and standard error alone,
/// and make no other system call than the list in the source has; the others fail with EPERM. False with
/// errno: not in force.
bool enter_seccomp(int answers);

} // namespace deepgen::sandbox
