// VendorProduct: one matrix multiplication by a vendor's library, set up once. Row-major matrices are the
// library's column-major ones transposed, so the operands are swapped: D^T = B^T A^T.
#pragma once

#include "measure/gpu/toolbox/cuda_operands.h"
#include "measure/vendor/gpu/cuda_vendor.h"

#include <memory>

namespace deepgen::cuda {

/// Lives in a worker and is never torn down: the process ends.
class VendorProduct {
public:
  static std::unique_ptr<VendorProduct> make(const Gemm&, const VendorPlan&, const CallOperands&);
  virtual ~VendorProduct() = default;

  virtual std::vector<Vendor::Algorithm> algorithms() = 0;
  /// `workspace`: of as many bytes as the algorithm uses.
  void enqueue(const Vendor::Algorithm&, Address workspace, const CallOperands&, const Toolbox&, Stream);

protected:
  VendorProduct(const Gemm&, const VendorPlan&);
  virtual void multiply(const Vendor::Algorithm&, Address workspace, const CallOperands&, Stream) = 0;
  /// Where the product goes: of both weights, where there is a gate.
  Array product(const CallOperands&) const;
  /// What one multiplication has of B and of the product: all, or a weight and its half.
  struct Part {
    Array b, product;
  };
  std::vector<Part> parts(const CallOperands&) const;
  /// The product waits for alpha.
  bool unscaled() const { return plan_.scratch && problem_.a == Type::i8; }
  double alpha(const CallOperands& x) const { return unscaled() ? 1 : x.alpha; }
  double beta() const { return plan_.fused_residual ? 1 : 0; }

  const Gemm problem_;
  const VendorPlan plan_;
  const Type output_;     ///< of the product
  const Type scale_type_; ///< of alpha and beta

private:
  EpilogueParameters rest(const CallOperands&) const;
  Memory scratch_;
};

std::unique_ptr<VendorProduct> make_lt_product(const Gemm&, const VendorPlan&, const CallOperands&);
std::unique_ptr<VendorProduct> make_rocblas_product(const Gemm&, const VendorPlan&, const CallOperands&);

/// "rocblas 5.0.0.1a2b"; empty where there is none. Only for workers.
std::string rocblas_version();
/// Empty where there is one.
std::string why_no_rocblas();

inline constexpr size_t vendor_workspace = size_t(64) << 20; ///< bytes that an algorithm may ask for

} // namespace deepgen::cuda
