// A function of a generated library with a call of OpenBLAS beside a kernel that does nothing: what is right
// was written by the library.
#pragma once

#include "deepgen/kernel_abi.h"
#include "deepgen/runtime.h"
#include "runtime/cpu/cpu.h"
#include "tests/unit/runtime/gemm_operands.h"

#include <string>
#include <vector>

namespace deepgen::blas_tests {

using deepgen::EpilogueOp;

inline int kernel_calls = 0;
inline void count_call(const uint64_t*) { ++kernel_calls; }

/// A function with the call beside its kernel.
class Function {
public:
  explicit Function(const deepgen::Gemm& p, const std::string& version = "9.8.7") : version_(version) {
    deepgen::Gemm whole = p;
    complete(whole);
    key_ = whole.key();
    for (const EpilogueOp op : whole.epilogue) steps_.push_back(uint8_t(op));
    call.text = "the call", call.version = version_.c_str(), call.device = device_.c_str();
    call.library = DEEPGEN_LIBRARY_OPENBLAS, call.state = &state_;
    call.flags = (p.a_transposed() ? DEEPGEN_VENDOR_A_TRANSPOSED : 0) |
                 (p.b_transposed() ? DEEPGEN_VENDOR_B_TRANSPOSED : 0);
    call.steps = steps_.data(), call.step_count = uint32_t(steps_.size());
    kernel.arch = "cpu", kernel.config = "the kernel", kernel.args = slots_, kernel.arg_count = 1;
    kernel.isa = 1, kernel.entry = count_call, kernel.vendor = &call;
    kernel.tiles_m = kernel.tiles_n = kernel.tiles_b = kernel.grain_m = kernel.grain_n = 1;
    function.name = "f", function.problem = key_.c_str();
    operands_.set(function, whole);
    function.kernels = &kernel, function.kernel_count = 1, function.selected = &selected_;
    kernel_calls = 0;
  }
  std::string config() { return deepgen_selected_config(&function); }
  std::string state() {
    const char* text = deepgen_selected_fallback(&function);
    return text ? text : "";
  }
  deepgen_status run() { return deepgen_run_gemm(&function, &args); }

  deepgen_vendor_call call{};
  deepgen_kernel kernel{};
  deepgen_function function{};
  deepgen_gemm_args args;

private:
  std::string version_, device_ = deepgen::cpu::ModelName().text, key_;
  std::vector<uint8_t> steps_;
  uint32_t volatile state_ = 0;
  static constexpr uint8_t slots_[] = {DEEPGEN_ARG_A};
  const deepgen_kernel* volatile selected_ = nullptr;
  deepgen::RuntimeOperands operands_;
};

inline deepgen::Gemm problem(int64_t m, int64_t n, int64_t k, deepgen::Type type = deepgen::Type::f32) {
  deepgen::Gemm p;
  p.m = m, p.n = n, p.k = k, p.a = p.b = p.d = type;
  return p;
}

} // namespace deepgen::blas_tests
