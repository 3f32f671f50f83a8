// The fake cuDNN on the fake HIP's device, for tests of what is asked of it.
#pragma once

#include "tests/unit/runtime/amd/hip_devices.h"

#include "fake_cudnn.h"
#include "measure/devices/cuda_devices.h"
#include "measure/vendor/gpu/cudnn_attention.h"
#include "tests/paths.h"

#include <cstdlib>
#include <gtest/gtest.h>

namespace deepgen::cuda {

inline Attention cudnn_problem(Type type = Type::bf16, AttentionMask mask = AttentionMask::none) {
  Attention p;
  p.heads = 4, p.kv_heads = 2, p.head_dim = 32, p.value_dim = 16;
  p.q = p.kv = p.out = type, p.mask = mask;
  p.queries = 64, p.keys = 128;
  p.at_batch = 2, p.at_queries = 13, p.at_keys = 37;
  return p;
}

class Cudnn : public ::testing::Test {
public:
  void SetUp() override {
    setenv("DEEPGEN_HIP_DRIVER", paths::fake_hip, 1);
    setenv("DEEPGEN_CUDNN", paths::fake_cudnn, 1);
    fake_hip::Device device = hip_tests::mi300x();
    device.memory = 200000; // for few sets of operands
    fake_hip::reset({device});
    fake_cudnn::reset();
    use(Platform::hip);
  }
  void TearDown() override {
    use(Platform::cuda);
    setenv("DEEPGEN_CUDNN", paths::fake_cudnn, 1);
  }

  static Device device() { return devices(Platform::hip).at(0); }
  static Vendor asked(const Attention& p) {
    Bench bench(p, device(), 0, 1);
    return ask_cudnn(bench.ring(), "sm_90a", 1);
  }
  static void expect_no_complaints(const std::string& of) {
    for (const std::string& complaint : fake_cudnn::state().complaints)
      ADD_FAILURE() << complaint << " of " << of;
    for (const std::string& complaint : fake_hip::state().complaints)
      ADD_FAILURE() << complaint << " of " << of;
  }
};

} // namespace deepgen::cuda
