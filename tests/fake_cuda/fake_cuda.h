// A CUDA driver that runs nothing: a shared library with cuGetProcAddress_v2 and the entry points behind it,
// which records what it is asked for. Point DEEPGEN_CUDA_DRIVER at it, link it, and set it up through
// state().
//
// Code is text: "<cubin or ptx> <arch> <entry>=<bytes of a parameter>,<bytes>,... <entry>=..."; other words
// are comments. Or it is PTX, or a cubin, whose parameters are then not recorded.
//
// A program that does not know it sets it up by FAKE_CUDA_DEVICE="<capability> <name>", such as "9.0 NVIDIA
// H100". That device is then current on every thread, and each launch is a line on stderr.
#pragma once

#include "runtime/nvidia/cuda_driver.h"

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace fake_cuda {

struct Device {
  std::string name;
  int major = 9, minor = 0, multiprocessors = 132;
  int max_dynamic_shared = 227 << 10;
  int blocks_per_multiprocessor = 2, clusters = 60; ///< what the occupancy queries answer
};

struct Launch {
  std::string image, entry;
  std::array<uint32_t, 3> grid, block;
  uint32_t shared;
  const void* stream;
  std::vector<deepgen::nvidia::LaunchAttribute> attributes;
  std::vector<std::string> parameters; ///< as many bytes each as the entry declares
};

struct EncodedMap {
  int type, interleave, swizzle, promotion, fill;
  uint64_t address;
  std::vector<uint64_t> sizes, strides;
  std::vector<uint32_t> box;
};

/// Guarded by `mutex` inside the driver; tests set it up while no thread calls.
struct State {
  std::mutex mutex;
  std::vector<Device> devices;
  std::set<std::string> missing;            ///< entry points that this driver does not have
  std::map<std::string, int> results;       ///< by entry point: fails with this
  std::map<std::string, int> image_results; ///< by a part of the code's text: loading it fails with this
  std::atomic<bool> capturing{false}; ///< some stream is: calls that load code fail unless in relaxed mode
  std::atomic<bool> recording{true};

  std::map<std::string, int> calls; ///< by entry point
  std::vector<Launch> launches;
  std::vector<EncodedMap> maps; ///< the nth map's first word is n
};
State& state();

/// Empties the record and the failures, and gives the driver these devices.
void reset(std::vector<Device> devices);
/// Makes a device's context current on this thread; -1: none.
void set_current(int device);
/// This thread's stream capture mode: 0 (global) unless it was exchanged.
int capture_mode();

} // namespace fake_cuda
