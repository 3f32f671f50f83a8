// What the parts of the fake HIP share.
#pragma once

#include "fake_hip.h"

#include <functional>

namespace fake_hip {

enum Result : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  invalid_configuration = 9,
  invalid_device_function = 98,
  no_device = 100,
  invalid_device = 101,
  invalid_image = 200,
  no_binary_for_gpu = 209,
  invalid_handle = 400,
  not_found = 500,
  not_ready = 600,
  capture_unsupported = 900,
  capture_unmatched = 903
};

/// The thread's current device.
int current_device();

/// Records the call and says how it was told to fail; fails without a device. With the mutex held.
int enter(const char* name);
/// For calls that a capture on this thread, in another mode than relaxed, does not allow.
int forbidden_in_capture();
/// By how many captures of this thread.
extern thread_local int captures;

/// Does `work` now, or when the graph that the stream is being captured into is launched.
int enqueue(void* stream, double seconds, std::function<int()> work);

int allocation_of(const void* address, void** begin, size_t* bytes);

#define ENTER(name)                                                                                          \
  std::lock_guard lock(state().mutex);                                                                       \
  if (int told = enter(#name)) return told;

} // namespace fake_hip
