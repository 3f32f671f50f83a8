// Device: what a search runs on, as `deepgen-measure devices` found it and device.json keeps it.
#pragma once

#include "base/kernel/config.h"

namespace deepgen {

/// Facts about one device. For arch "cpu": `isa` is the x86-64 micro-architecture level (1..4, System V
/// psABI), taken from feature bits and never from the CPU's name, which virtual machines mask. Caches in
/// bytes, per core for L1d and L2. For a GPU: isa is 0, `cores` are the multiprocessors, l1d is 0.
struct Device {
  std::string arch = "cpu";
  bool present = true; ///< false: compile for it only
  std::string name;
  int64_t isa = 1;
  std::vector<std::string> features; ///< sorted, e.g. avx2, avx512f, fma
  int64_t cores = 1;
  int64_t l1d = 32 << 10, l2 = 1 << 20, l3 = 32 << 20;

  // GPUs only.
  std::string uuid;                  ///< "GPU-..." as nvidia-smi prints it; empty when not present
  int64_t shared_block = 0;          ///< largest dynamic shared memory of a block, bytes
  int64_t shared_multiprocessor = 0; ///< shared memory of a multiprocessor, bytes
  int64_t clock_khz = 0;             ///< peak multiprocessor clock
  int64_t memory_bandwidth = 0;      ///< peak, bytes/s

  bool operator==(const Device&) const = default;
  Json to_json() const; ///< {"schema":"deepgen.device/1",...}
  static Device from_json(const Json&);
  static Device read(const std::string& path); ///< throws Error naming the file

  bool is_cpu() const { return arch == "cpu"; }
  /// 80 for sm_80, 90 for sm_90a; 0 for what is no NVIDIA arch.
  int64_t compute_capability() const;
};

/// 80 for "sm_80", 90 for "sm_90a"; 0 for another kind of arch.
int64_t compute_capability(const std::string& arch);
bool is_amd(const std::string& arch); ///< "gfx942", ... (amd.h)
inline bool is_gpu(const std::string& arch) { return compute_capability(arch) != 0 || is_amd(arch); }

/// The facts of an arch that decide what is legal and what it should cost, for builds without the device: for
/// GPUs those of the arch's data-centre part (sm_80: A100, sm_86: A10, sm_89: L40S, sm_90: H100, sm_100:
/// B200, sm_120: RTX PRO 6000; AMD's: amd.cpp). Throws Error for an arch that is not known.
Device generic_gpu(const std::string& arch);

} // namespace deepgen
