// Select: which config a build links for each problem, from the lock, the records of a search, or the
// default.
#pragma once

#include "generator/lock/exchange.h"
#include "generator/lock/lock.h"

namespace deepgen {

/// DEEPGEN_MODE. auto: lock, else records, else default. lock: lock, else default. frozen: lock, else error.
enum class Mode { automatic, lock, frozen };
Mode parse_mode(const std::string&); ///< throws Error naming the three

/// What the default configs of `lock` and `frozen` builds assume: x86-64-v3 with common cache sizes;
/// generic_gpu(). Taking the host's own facts instead would give other bytes on other hosts.
Device generic_device(const std::string& arch);

struct SelectRequest {
  ProblemFile file;
  std::string arch = "cpu";
  Device device;               ///< of the arch, on this host; not present: only compiled for
  std::vector<RecordLog> logs; ///< of its search; read in automatic mode only
};

struct Selected {
  ChoiceFile choice;
  std::string note; ///< a line for the user; empty when there is nothing to say
};

/// One selection a request. The device decides the rung of the lock's ladder (exact device, same arch) in
/// lock and automatic mode, and the default config in automatic mode; frozen ignores it and takes the entry
/// of the highest isa, then by name. A stale entry counts only where no good one is left. Of GPUs the entries
/// of all devices are linked, so the device does not matter, and in frozen mode none may be stale. In frozen
/// mode every missing and stale entry is collected into one Error. Problems marked untuned always get the
/// default config.
std::vector<Selected> select(Mode, const Lock&, const std::string& lock_path,
                             const std::vector<SelectRequest>&);

} // namespace deepgen
