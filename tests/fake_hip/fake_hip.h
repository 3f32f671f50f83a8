// A HIP runtime library without a GPU: device memory is the host's, and a launch checks what a driver checks,
// packs the arguments as the code object's metadata says, records it, and hands it to a hook
// (fake_hip_hook.h) when there is one. Streams run at once; a stream that is being captured records into a
// graph. Time is made up: a launch takes what the test says. Point DEEPGEN_HIP_DRIVER at it, link it,
// and set it up through state().
//
// A program that does not know it sets it up by the environment:
//   FAKE_HIP_DEVICES="gfx942:sramecc+:xnack- AMD Instinct MI300X;gfx1100 Radeon RX 7900 XTX"
//   FAKE_HIP_HOOK=<library>            runs the kernels
//   FAKE_HIP_RESULTS="hipMalloc=2;..." these entry points fail
//   FAKE_HIP_REPLAYS=0                 graphs take their time and run nothing: for timing what a hook would
//   run for ages FAKE_HIP_TRACE=1                   each launch is a line on stderr
#pragma once

#include "code_object.h"
#include "fake_hip_hook.h"

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace fake_hip {

struct Device {
  std::string target = "gfx942:sramecc+:xnack-", name = "AMD Instinct MI300X";
  int compute_units = 304;
  uint32_t group_bytes = 64 << 10; ///< LDS of a workgroup
  int blocks_per_unit = 2;         ///< what the occupancy query answers
  size_t memory = size_t(1) << 30; ///< bytes that are said to be free
};

struct Launch {
  int device;
  std::string code, kernel;
  std::array<uint32_t, 3> grid, block;
  uint32_t shared;
  const void* stream;
  std::string kernarg;                 ///< the whole segment
  std::vector<std::string> parameters; ///< what is in it, in the order of the metadata
};

/// Guarded by `mutex` inside the library; tests set it up while no thread calls.
struct State {
  std::mutex mutex;
  std::vector<Device> devices;
  std::map<std::string, int> results;      ///< by entry point: fails with this
  std::map<std::string, int> code_results; ///< by a part of the code's bytes: loading it fails with this
  std::atomic<bool> capturing{false};      ///< some stream is: loading fails unless in relaxed mode
  std::atomic<bool> recording{true};
  fake_hip_run_function hook = nullptr;
  bool replays = true; ///< whether the launch of a graph runs what is in it, or only takes its time
  std::map<std::string, double> seconds; ///< by kernel: what a launch takes, 10 us where it is not here

  std::map<std::string, int> calls; ///< by entry point
  std::vector<Launch> launches;
  std::vector<std::string> complaints; ///< what a driver would refuse, in words
};
State& state();

/// Empties the record and the failures, and gives the library these devices.
void reset(std::vector<Device> devices);
/// This thread's stream capture mode: 0 (global) unless it was exchanged.
int capture_mode();
/// Bytes of device memory that are allocated.
size_t allocated_bytes();

} // namespace fake_hip
