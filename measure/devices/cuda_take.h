// Several GPUs of one model: whoever measures takes one that is free. Never two processes on one, whoever
// starts them.
#pragma once

#include "base/files/locks.h"
#include "base/kernel/device.h"

#include <functional>
#include <vector>

namespace deepgen::cuda {

/// The name under which the whole host locks a device while anything runs on it.
std::string lock_name(const Device& device);

/// Whether it does not matter on which of two devices something is measured.
bool same_model(const Device& x, const Device& y);

/// `list`: UUIDs as nvidia-smi prints them, beginnings of them, names, or numbers in the driver's order, with
/// commas between; empty: every device.
bool is_allowed(const Device& device, size_t number, const std::string& list);

struct Taken {
  Device device; ///< with its own UUID
  FileLock lock;
};

/// How long one process may have a device while this one waits: $DEEPGEN_DEVICE_WAIT, or half an hour.
double longest_hold();

/// Takes a free one of `attached` that is of the model and allowed; waits for one where none is, calling
/// `waiting` each time. Throws Error when there is none at all, or none changes hands for so many seconds.
Taken take(const Device& model, const std::vector<Device>& attached, const std::string& allowed,
           const std::function<void()>& waiting, double longest = longest_hold());

/// Of what the driver of the model's platform shows, with which this process goes on.
Taken take(const Device& model, const std::string& allowed);

} // namespace deepgen::cuda
