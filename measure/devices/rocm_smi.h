// What ROCm's management library (librocm_smi64) knows of an AMD device, as nvml.h of NVIDIA's: clock,
// throttling, power limit, and who else computes on it. Loaded with dlopen; where it is missing, nothing is
// known and nothing is claimed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace deepgen {

class RocmSmi {
public:
  /// Of the device that has this UUID, or place on the bus, as hip_uuid() writes it. `in_hip`: the address of
  /// something in HIP's library, beside which it is looked for. Empty where the library or the device is not
  /// found: `why`, if given, says which.
  static std::optional<RocmSmi> open(const void* in_hip, const std::string& uuid, std::string* why = nullptr);

  /// Now. What the driver does not tell is 0 or false.
  struct State {
    double megahertz = 0;
    bool throttled = false; ///< for heat: a sample says nothing about the kernel
    bool capped = false;    ///< at the limit of power or current, the normal state of a busy device
  };
  State state() const;
  /// Processes that compute on the device, this one included if it does.
  std::optional<int> compute_processes() const;
  double power_limit_watts() const; ///< 0: unknown
  const std::string& driver_version() const { return driver_version_; }

private:
  uint32_t index_ = 0;
  int (*metrics_)(uint32_t, void*) = nullptr;
  int (*power_cap_)(uint32_t, uint32_t, uint64_t*) = nullptr;
  int (*processes_)(void*, uint32_t*) = nullptr;
  int (*devices_of_)(uint32_t, uint32_t*, uint32_t*) = nullptr;
  std::string driver_version_;
};

} // namespace deepgen
