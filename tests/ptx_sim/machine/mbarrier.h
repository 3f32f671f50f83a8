// Mbarrier: a barrier in shared memory that counts arrivals of threads and bytes of bulk copies. It is an
// agent of its own: its clock counts phases, and what copies write is the barrier's writing, known to those
// who have seen the phase complete.
#pragma once

#include "tests/ptx_sim/machine/order.h"

#include <functional>
#include <map>
#include <vector>

namespace deepgen::ptx_sim {

struct Mbarrier {
  Agent agent = 0;
  uint32_t count = 1;     ///< arrivals of a phase
  uint32_t pending = 1;   ///< of this phase, still to come
  int64_t bytes = 0;      ///< of copies, still to come; below 0 when they are not expected yet
  uint32_t completed = 0; ///< phases
  uint32_t first_clock = 0;
  Knowledge arrived, done; ///< of this phase; of all completed ones

  /// The agent's clock in this phase.
  uint32_t clock() const { return first_clock + completed + 1; }
  void arrive(const Knowledge&, uint32_t arrivals);
  void expect(int64_t more) { bytes += more; }
  void copied(int64_t count) { bytes -= count; }
  /// Ends the phase when nothing is pending; true then.
  bool complete();
};

} // namespace deepgen::ptx_sim
