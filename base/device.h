// Device: what a search runs on, as `deepgen-measure devices` found it and device.json keeps it.
#pragma once

#include "base/config.h"

namespace deepgen {

/// Facts about one device. For arch "cpu": `isa` is the x86-64 micro-architecture level (1..4, System V psABI),
/// taken from feature bits and never from the CPU's name, which virtual machines mask. Caches in bytes, per core
/// for L1d and L2.
struct Device {
  std::string arch = "cpu";
  bool present = true; ///< false: compile for it only
  std::string name;
  int64_t isa = 1;
  std::vector<std::string> features; ///< sorted, e.g. avx2, avx512f, fma
  int64_t cores = 1;
  int64_t l1d = 32 << 10, l2 = 1 << 20, l3 = 32 << 20;

  bool operator==(const Device&) const = default;
  Json to_json() const; ///< {"schema":"deepgen.device/1",...}
  static Device from_json(const Json&);
  static Device read(const std::string& path); ///< throws Error naming the file
};

} // namespace deepgen
