// A function with a call of a vendor's library beside its tuned kernel, and a second kernel for any operands.
#pragma once

#include "cuda_test_function.h"

#include <gtest/gtest.h>

namespace deepgen::cuda_tests {

struct VendorCallFunction : CudaFunction {
  static constexpr size_t kernel_workspace = 512;

  /// `workspace`: of the call, which is larger than the kernel's.
  VendorCallFunction(const deepgen_vendor_call& call, KernelText tuned, const KernelText& any,
                     std::vector<EpilogueOp> epilogue, int64_t batch, size_t workspace)
      : CudaFunction(
            [&] {
              tuned.align_a = tuned.align_b = tuned.align_d = 16;
              tuned.workspace = kernel_workspace;
              return std::vector<KernelText>{tuned, any};
            }(),
            batch) {
    if (!epilogue.empty()) set_epilogue(std::move(epilogue));
    const_cast<deepgen_kernel*>(function().kernels)->vendor = &call;
    args.workspace = reinterpret_cast<void*>(0x70000), args.workspace_bytes = workspace;
  }
  std::string state() {
    const char* text = deepgen_launch_fallback(&function());
    return text ? text : "";
  }
  /// The kernel would run, and the words say why.
  void expect_kernel(const std::string& words) {
    EXPECT_NE(state().find(words), std::string::npos) << state();
    EXPECT_EQ(std::string(config()), "tuned");
    EXPECT_EQ(workspace(), kernel_workspace);
  }
};

} // namespace deepgen::cuda_tests
