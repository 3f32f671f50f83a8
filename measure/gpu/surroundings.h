// What else goes on on a GPU, and what its driver is: facts that NVML or ROCm's management library tells.
#pragma once

#include "base/json/json_fwd.h"
#include "base/kernel/device.h"

#include <optional>
#include <string>

namespace deepgen {
class RocmSmi;
}

namespace deepgen::cuda {

/// ROCm's management library; none of other vendors' devices, nor where it is missing: `why`, if given, says
/// so.
std::optional<RocmSmi> open_smi(const Device& device, std::string* why = nullptr);

struct Surroundings {
  int other_processes = 0;
  std::string unwatched; ///< why throttling, or who else computes, is not known; empty when it is
  /// Nobody else computes on the device, as far as it can be seen, and it can.
  bool alone() const { return other_processes == 0 && unwatched.empty(); }
  double power_limit_watts = 0;
  std::string driver;
};
/// Asked in a child process, before anything is timed.
Surroundings surroundings(const Device& device);

/// The child's message. Reading throws ForeignMessage.
Json to_json(const Surroundings&);
Surroundings surroundings_from(const Json&);

} // namespace deepgen::cuda
