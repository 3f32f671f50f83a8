// The fixture of tests that need an NVIDIA GPU.
#pragma once

#include "measure/devices/cuda_devices.h"

#include <gtest/gtest.h>

namespace deepgen {

/// Skips where none is attached. The driver is not loaded in this process: it forks workers.
class GpuTest : public testing::Test {
public:
  void SetUp() override {
    if (!device().present) GTEST_SKIP() << "no NVIDIA GPU here";
  }
  static const Device& device() {
    static const Device first = [] {
      const std::vector<Device> all = cuda::devices(cuda::Platform::cuda);
      Device none;
      none.present = false;
      return all.empty() ? none : all.front();
    }();
    return first;
  }
};

} // namespace deepgen
