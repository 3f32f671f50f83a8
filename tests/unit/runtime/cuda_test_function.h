// A function of a generated library as tests describe one.
#pragma once

#include "deepgen/kernel_abi.h"
#include "deepgen/runtime.h"
#include "gemm_operands.h"

#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

namespace deepgen::cuda_tests {

/// One kernel; the text members may be changed until the function is made.
struct KernelText {
  std::string config, arch = "sm_90a", target, cubin, ptx, device; ///< empty: none; target: as arch
  uint32_t align_a = 1, align_b = 1, align_d = 1;
  uint64_t most_pitch = 0;
  size_t workspace = 0;
  std::vector<uint8_t> args{DEEPGEN_ARG_A};
  std::vector<deepgen_launch> launches{{"deepgen_kernel", {4, 1, 1}, {128, 1, 1}, {1, 1, 1}, 0, 0}};
  std::vector<deepgen_tensor_map> maps;
  // Of a function with ranges.
  std::vector<deepgen_range> taken;     ///< by size; empty: all calls take it
  std::vector<deepgen_size_rule> rules; ///< by deepgen_rule
  size_t workspace_fixed = 0;
  uint32_t sum_order = 0; ///< of a batch invariant function
};

/// A kernel whose cubin and PTX have the entry deepgen_kernel with one pointer.
inline KernelText kernel(const std::string& config, const std::string& arch = "sm_90a") {
  KernelText k;
  k.config = config, k.arch = arch;
  k.cubin = "cubin " + arch + " deepgen_kernel=8 name:" + config;
  k.ptx = "ptx " + arch + " deepgen_kernel=8 name:" + config;
  return k;
}

/// bf16 m x n x k = 64 x 128 x 32, nt.
inline Gemm small_gemm(int64_t batch = 1) {
  Gemm p;
  p.m = 64, p.n = 128, p.k = 32, p.batch = batch, p.a = p.b = p.d = Type::bf16, p.layout = Layout::nt;
  return p;
}

/// Nothing is dereferenced: addresses are made up.
class CudaFunction {
public:
  explicit CudaFunction(std::vector<KernelText> texts, int64_t batch = 1)
      : CudaFunction(std::move(texts), small_gemm(batch)) {}
  CudaFunction(std::vector<KernelText> texts, const Gemm& p) : texts_(std::move(texts)) {
    function_.name = "test", function_.problem = "gemm ...";
    set(p);
    for (KernelText& t : texts_) add(t);
    function_.kernels = kernels_.data(), function_.kernel_count = uint32_t(kernels_.size());
    function_.selected = &selected_, function_.devices = &devices_;
    args.a = reinterpret_cast<void*>(0x10000), args.b = reinterpret_cast<void*>(0x20000);
    args.d = reinterpret_cast<void*>(0x30000);
  }
  CudaFunction(const CudaFunction&) = delete;
  /// As of a library that is unloaded.
  ~CudaFunction() { deepgen_unregister(&function_, 1); }

  deepgen_status launch(deepgen_stream stream = nullptr) {
    return deepgen_launch_gemm(&function_, &args, stream);
  }
  const char* config() { return deepgen_launch_config(&function_); }
  size_t workspace() { return deepgen_launch_workspace_size(&function_); }
  /// Of calls of these sizes.
  const char* config(const deepgen_call_sizes& x) { return deepgen_launch_config_at(&function_, &x); }
  size_t workspace(const deepgen_call_sizes& x) { return deepgen_launch_workspace_size_at(&function_, &x); }
  deepgen_status prepare() { return deepgen_prepare(&function_); }
  deepgen_function& function() { return function_; }
  /// The operands of another problem.
  void set(const Gemm& p) {
    operands.set(function_, p);
    for (size_t i = 0; i < kernels_.size(); ++i) require(texts_[i], kernels_[i]);
  }
  void set_epilogue(std::vector<EpilogueOp> steps) {
    operands.problem.epilogue = std::move(steps);
    set(operands.problem);
  }

  deepgen_gemm_args args;
  RuntimeOperands operands;

private:
  struct State {
    void* volatile pointer = nullptr;
  };
  /// What a kernel asks of operands: d's stands for C, residual and multiplier, too.
  void require(const KernelText& t, deepgen_kernel& k) {
    std::vector<deepgen_requirement>& list = requirements_.emplace_back();
    for (const deepgen_operand& x : operands.rows()) {
      const bool a = x.slot == DEEPGEN_ARG_A, b = x.slot == DEEPGEN_ARG_B,
                 matrix = x.flags & DEEPGEN_OPERAND_MATRIX;
      list.push_back({a ? t.align_a : b ? t.align_b : matrix ? t.align_d : 1, a || b ? t.most_pitch : 0});
    }
    k.requirements = list.data();
  }
  void add(KernelText& t) {
    if (t.target.empty()) t.target = t.arch;
    codes_.push_back({t.target.c_str(), t.cubin.empty() ? nullptr : t.cubin.c_str(), t.cubin.size(),
                      t.ptx.empty() ? nullptr : t.ptx.c_str(), &states_.emplace_back().pointer});
    deepgen_kernel k{};
    k.arch = t.arch.c_str(), k.config = t.config.c_str();
    k.args = t.args.data(), k.arg_count = uint32_t(t.args.size());
    k.workspace = t.workspace, k.sum_order = t.sum_order;
    k.device = t.device.empty() ? nullptr : t.device.c_str();
    k.gpu = &codes_.back();
    k.launches = t.launches.data(), k.launch_count = uint32_t(t.launches.size());
    k.maps = t.maps.data(), k.map_count = uint32_t(t.maps.size());
    k.taken = t.taken.empty() ? nullptr : t.taken.data();
    k.rules = t.rules.empty() ? nullptr : t.rules.data();
    k.workspace_fixed = t.workspace_fixed;
    require(t, k);
    kernels_.push_back(k);
  }

  std::vector<KernelText> texts_;
  std::deque<State> states_;
  std::deque<deepgen_gpu_code> codes_;
  std::vector<deepgen_kernel> kernels_;
  std::deque<std::vector<deepgen_requirement>> requirements_;
  const deepgen_kernel* selected_ = nullptr;
  void* volatile devices_ = nullptr;
  deepgen_function function_{};
};

} // namespace deepgen::cuda_tests
