// The vendor's libraries as a baseline, loaded with dlopen: cuBLASLt, and cuDNN for attention; on AMD's
// devices hipBLASLt and rocBLAS.
#pragma once

#include "base/problem/lt_fusion.h"
#include "measure/gpu/cuda_bench.h"

#include <array>
#include <vector>

namespace deepgen::cuda {

/// How a problem maps to one call of a library and, for what it cannot fuse, a kernel of our own behind it.
struct VendorPlan {
  /// lt: cuBLASLt or hipBLASLt, by the platform; cudnn: of attention, with nothing else of this.
  enum Library { lt, rocblas, cudnn } library = lt;
  std::string why_not; ///< not empty: it cannot multiply these at all
  bool fused_bias = false, fused_residual = false, fused_scales = false;
  LtFusion::Activation activation = LtFusion::none;
  /// Left for the kernel behind it.
  std::vector<EpilogueOp> rest;
  /// The product goes to scratch first: that of both weights of a gated problem, in D's type; that of
  /// integers, of which cuBLASLt writes nothing else but i8, scaled by alpha, in i32.
  bool scratch = false;
  std::optional<EpilogueOp> gate; ///< left for the kernel behind it
  bool halves = false;            ///< of a gated problem: a product for each weight, instead of one for both
  /// No kernel of ours runs behind it, as the measurement has none for AMD's devices: the library is timed
  /// without what is left, which is never in our favour.
  bool alone = false;
  bool tf32_as_f32 = false; ///< where the library does not multiply tf32
  bool separate() const { return scratch || !rest.empty(); }
  /// "fused bias+gelu_tanh, then an elementwise kernel of ours for residual"; "fused bias, without silu".
  std::string text() const;
  std::string left() const; ///< "silu": what it does not do itself
};
/// For cuBLASLt or hipBLASLt. `fuse`: as much as it has; else nothing but the product.
VendorPlan plan_vendor(const Gemm&, bool fuse);
VendorPlan plan_rocblas(const Gemm&);
/// In the order in which they are tried on the platform in use: the first one with an algorithm is the
/// baseline.
std::vector<VendorPlan> vendor_plans(const Gemm&);

/// Every algorithm that the heuristic returns for a problem and that runs.
struct Vendor {
  std::string name = "cublaslt"; ///< "cublaslt 13.1.0"; "hipblaslt 1.2.3 without silu"
  VendorPlan plan;
  std::string why_not; ///< empty when there are algorithms
  struct Algorithm {
    std::array<uint64_t, 8> bits{}; ///< cublasLtMatmulAlgo_t, hipblasLtMatmulAlgo_t; of cuDNN none
    uint64_t workspace = 0;         ///< bytes that it uses
    /// "id 66, tile 20, stages 36, split-K 1", "engine 5, knobs 24=3", as the library numbers them.
    std::string text;
    VendorPlan::Library library =
        VendorPlan::lt;  ///< rocBLAS may stand beside a plan of hipBLASLt's that does the same
    bool halves = false; ///< as in a plan: those stand beside the others
  };
  std::vector<Algorithm> algorithms;
  /// Of cuDNN, which configs are not among them, and why: "engine 3: wrong: out[...] ...".
  std::vector<std::string> left_out;
};

/// Asks in a child process; in another one where an algorithm crashes or hangs, which is left out then.
Vendor find_vendor(const Gemm& problem, const Device& device, uint64_t seed);

/// The same for cuDNN's configs. Where a problem is none of cuDNN's, no process is needed to say so.
Vendor find_cudnn(const Attention& problem, const Device& device, uint64_t seed);

/// The same for any problem; of what the libraries do not compute, none.
Vendor baseline_of(const Problem& problem, const Device& device, uint64_t seed);

/// An arm per algorithm. `bench` must outlive them.
std::vector<Arm> vendor_arms(const Vendor& vendor, Bench& bench);

/// The enqueue of an algorithm in this process, for tests of the mapping.
Bench::Enqueue vendor_call(const VendorPlan& plan, const Vendor::Algorithm& algorithm, Bench::Ring& ring);
/// Bytes for workspaces: three times the cache, so that none is found there when its turn comes again.
int64_t workspace_memory(int64_t cache);
/// How many of `bytes` take turns in `memory`.
uint64_t rotating_workspaces(uint64_t bytes, int64_t memory);
/// In this process: what find_vendor() finds. `may_try` is called ahead of each algorithm, with its number,
/// and returns whether to try it.
Vendor ask_vendor(Bench::Ring& ring, const std::function<bool(int)>& may_try = [](int) { return true; });

} // namespace deepgen::cuda
