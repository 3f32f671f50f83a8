// What a process that runs unproven CPU code may still do: compute, take memory up to a limit, and answer. It
// opens no file, reaches no network, starts no program and no process, and signals nobody.
//
// Landlock refuses files and the network, a seccomp filter every system call that computing does not need.
// Either may be missing: a kernel without it, a container that forbids it. What is there is in force then,
// and text() says what is not. A GPU's driver needs devices, files and system calls of its own, so that
// workers on GPUs are not confined.
#pragma once

#include <cstdint>
#include <string>

namespace deepgen::sandbox {

struct Limits {
  int64_t bytes = 0;      ///< private memory beyond twice what the process has now, and slack for threads
  double cpu_seconds = 0; ///< of all threads together; 0: no limit
};

/// Processor time that a worker with so many seconds of wall time left never needs. Its parent ends it
/// earlier; this is for code that answers in the worker's name.
double enough_seconds(double left);

/// What is in force.
struct State {
  int landlock = 0; ///< its ABI; 0: missing
  bool seccomp = false, limits = false;
  std::string missing; ///< why, of each that is; empty when all are in force
  bool complete() const { return missing.empty(); }
  std::string text() const; ///< for people
};

/// Confines this process for good. Everything that it has to open must be open. `answers`: the only file,
/// beside standard error, that it may still write to. DEEPGEN_SANDBOX=off leaves all out.
State enter(int answers, const Limits&);

/// What enter() gives here: tried in a process of its own.
State probe();

/// In a confined process that found no memory: whether it has used up its own limit. Otherwise the host is
/// short of it.
bool memory_is_used_up();

} // namespace deepgen::sandbox
