// Devices and kernels of the fake HIP, and what was asked of it.
#pragma once

#include "fake_hip.h"
#include "tests/unit/runtime/cuda_test_function.h"

#include <algorithm>

extern "C" int hipSetDevice(int device);

namespace deepgen::hip_tests {

using cuda_tests::KernelText;
using Function = cuda_tests::CudaFunction; // which has no more of CUDA than its name

inline fake_hip::Device mi300x() { return {}; }
inline fake_hip::Device mi325x() { return {.name = "AMD Instinct MI325X"}; }
inline fake_hip::Device mi210() {
  return {.target = "gfx90a:sramecc+:xnack-", .name = "AMD Instinct MI210", .compute_units = 104};
}
inline fake_hip::Device radeon() {
  return {.target = "gfx1100", .name = "Radeon RX 7900 XTX", .compute_units = 96};
}

/// A code object with one entry for each launch, all with arguments of these bytes.
inline std::string code_object(const std::string& target, const std::vector<std::string>& entries,
                               const std::vector<uint32_t>& sizes) {
  fake_hip::CodeObject object;
  object.target = target;
  for (const std::string& entry : entries) {
    fake_hip::KernelInfo k;
    k.name = entry, k.arguments = fake_hip::lay_out(sizes);
    k.kernarg_bytes =
        k.arguments.empty() ? 0 : (k.arguments.back().offset + k.arguments.back().size + 7) / 8 * 8;
    object.kernels.push_back(k);
  }
  return fake_hip::make_code_object(object);
}

/// A kernel with the entry deepgen_kernel and one pointer; its code has the config's name behind the object,
/// so that two of them differ.
inline KernelText kernel(const std::string& config, const std::string& target = "gfx942") {
  KernelText k;
  k.config = config, k.arch = target.substr(0, target.find(':')), k.target = target;
  k.cubin = code_object(target, {"deepgen_kernel", "of_" + config}, {8});
  return k;
}

inline int calls(const char* entry_point) { return fake_hip::state().calls[entry_point]; }
/// The config whose code was launched last.
inline std::string launched() {
  const auto& launches = fake_hip::state().launches;
  if (launches.empty()) return "";
  const auto object = fake_hip::parse_code_object(launches.back().code.data(), launches.back().code.size());
  return object.kernels.back().name.substr(3);
}

} // namespace deepgen::hip_tests
