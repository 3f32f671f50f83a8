// Workplace: what a worker opens of its device once, however many benches it has one after the other.
#pragma once

#include "base/kernel/device.h"
#include "measure/devices/cuda_driver.h"
#include "measure/devices/nvml.h"
#include "measure/devices/rocm_smi.h"
#include "measure/gpu/toolbox/cuda_operands.h"

#include <memory>
#include <optional>

namespace deepgen::cuda {

/// The context, the measurement's own kernels, and what tells time and clock.
struct OpenDevice {
  explicit OpenDevice(const Device&);
  OpenDevice(const OpenDevice&) = delete;
  Context context;
  std::unique_ptr<const Toolbox> tools;
  std::optional<Nvml> nvml;
  std::optional<RocmSmi> smi;
  Memory reading; ///< a ClockReading
  Event begin = nullptr, end = nullptr;
};

/// Made in the parent, which touches no device; opened in each worker by the first that asks.
class Workplace {
public:
  explicit Workplace(const Device& device) : device_(device) {}
  OpenDevice& open() {
    if (!open_) open_ = std::make_unique<OpenDevice>(device_);
    return *open_;
  }

private:
  Device device_;
  std::unique_ptr<OpenDevice> open_;
};

} // namespace deepgen::cuda
