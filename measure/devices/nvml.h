// What the driver's management library knows: throttling, and who else computes on a device. Loaded with
// dlopen; where it is missing, nothing is known and nothing is claimed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace deepgen {

class Nvml {
public:
  /// Of the device with this UUID. Empty where the library or the device is not found: `why`, and what helps.
  static std::optional<Nvml> open(const std::string& uuid, std::string* why = nullptr);
  /// What this driver or device does not tell of what measurements watch; empty when all is told.
  std::string untold() const;

  /// Why the clock is lower than it might be, as bits (nvmlClocksEventReasons); empty when that cannot be
  /// asked.
  std::optional<uint64_t> clock_reasons() const;
  /// Processes that compute on the device, this one included.
  std::optional<int> compute_processes() const;
  double power_limit_watts() const; ///< 0: unknown
  const std::string& driver_version() const { return driver_version_; }

  /// Bits after which a sample says nothing about the kernel: slowdown by hardware, heat or power brake. The
  /// power cap is not among them: it is the normal state of a busy device.
  static constexpr uint64_t disturbing = 0x8 | 0x20 | 0x40 | 0x80;
  static constexpr uint64_t power_cap = 0x4;

private:
  void* device_ = nullptr;
  int (*reasons_)(void*, unsigned long long*) = nullptr;
  int (*processes_)(void*, unsigned*, void*) = nullptr;
  int (*power_limit_)(void*, unsigned*) = nullptr;
  std::string driver_version_;
};

} // namespace deepgen
