// Products by rocBLAS: f64, which hipBLASLt has not, and chips that it does not know.
#include "base/files/rocm.h"
#include "measure/vendor/gpu/vendor_product.h"
#include "runtime/amd/hip_driver.h"

#include <cstdint>

namespace deepgen::cuda {
namespace {

// rocblas-types.h of ROCm 5 to 7
enum Operation { kPlain = 111, kTransposed = 112 };
constexpr int kStandard = 0; ///< rocblas_gemm_algo: rocBLAS chooses

struct Library {
  int (*create)(void**);
  int (*set_stream)(void*, Stream);
  int (*set_workspace)(void*, void*, size_t);
  int (*version)(char*, size_t);
  int (*gemm)(void* handle, int trans_a, int trans_b, int m, int n, int k, const void* alpha, const void* a,
              int a_type, int lda, int64_t stride_a, const void* b, int b_type, int ldb, int64_t stride_b,
              const void* beta, const void* c, int c_type, int ldc, int64_t stride_c, void* d, int d_type,
              int ldd, int64_t stride_d, int batch, int compute_type, int algorithm, int32_t solution,
              uint32_t flags);

  /// Why there is none; empty when it is here. Only for workers.
  static const std::string& why_not() {
    static const std::string why = table().load();
    return why;
  }
  /// Null where there is none.
  static const Library* open() { return why_not().empty() ? &table() : nullptr; }

private:
  static Library& table() {
    static Library all;
    return all;
  }
  std::string load() {
    const amd::Driver* hip = amd::driver();
    const std::string none = "no rocBLAS here";
    if (!hip) return none;
    const OpenedLibrary found = rocm::open(reinterpret_cast<const void*>(hip->launch), rocm::rocblas);
    if (!found) return found.absence(none);
    bool complete = true;
    const auto find = [&](auto& slot, const char* symbol) {
      slot = reinterpret_cast<std::decay_t<decltype(slot)>>(dlsym(found.handle, symbol));
      complete = complete && slot;
    };
    find(create, "rocblas_create_handle"), find(set_stream, "rocblas_set_stream");
    find(set_workspace, "rocblas_set_workspace"), find(version, "rocblas_get_version_string");
    find(gemm, "rocblas_gemm_strided_batched_ex");
    return complete ? "" : none;
  }
};

/// rocblas_datatype
int data_type(Type t) {
  switch (t) {
  case Type::f64:
    return 152;
  case Type::f16:
    return 150;
  case Type::bf16:
    return 168;
  case Type::i8:
    return 160;
  case Type::i32:
    return 162;
  default:
    return 151; // f32, and tf32, which is f32 in memory; of 8-bit floats it has none
  }
}

void check_rocblas(int code, const char* call) {
  if (code != 0) throw DriverError(code, "rocBLAS status " + std::to_string(code), call);
}

class RocblasProduct final : public VendorProduct {
public:
  RocblasProduct(const Gemm& p, const VendorPlan& plan) : VendorProduct(p, plan) {
    check_rocblas(Library::open()->create(&handle_), "rocblas_create_handle");
  }

  /// The one that it chooses.
  std::vector<Vendor::Algorithm> algorithms() override {
    const int64_t most = INT32_MAX;
    for (int64_t size : {problem_.m, problem_.sum_columns(), problem_.k, problem_.batch})
      if (size > most) return {};
    Vendor::Algorithm one;
    one.workspace = vendor_workspace, one.text = "rocBLAS", one.library = VendorPlan::rocblas;
    return {one};
  }

private:
  void multiply(const Vendor::Algorithm& algorithm, Address workspace, const CallOperands& x,
                Stream stream) override {
    const Library& rocblas = *Library::open();
    const Gemm& p = problem_;
    const auto pointer = [](Address a) { return reinterpret_cast<void*>(a); };
    check_rocblas(rocblas.set_stream(handle_, stream), "rocblas_set_stream");
    // Its own would be allocated during a capture.
    check_rocblas(rocblas.set_workspace(handle_, pointer(workspace), algorithm.workspace),
                  "rocblas_set_workspace");
    const uint64_t alpha_bits = scalar_bits(alpha(x), scale_type_),
                   beta_bits = scalar_bits(beta(), scale_type_);
    const Array d = product(x), c = plan_.fused_residual ? x.step(EpilogueOp::residual) : d;
    const int d_type = data_type(output_),
              c_type = plan_.fused_residual ? data_type(p.epilogue_type()) : d_type;
    check_rocblas(rocblas.gemm(handle_, p.b_transposed() ? kTransposed : kPlain,
                               p.a_transposed() ? kTransposed : kPlain, int(p.sum_columns()), int(p.m),
                               int(p.k), &alpha_bits, pointer(x.b.data), data_type(p.b), int(x.b.ld),
                               x.b.stride, pointer(x.a.data), data_type(p.a), int(x.a.ld), x.a.stride,
                               &beta_bits, pointer(c.data), c_type, int(c.ld), c.stride, pointer(d.data),
                               d_type, int(d.ld), d.stride, int(p.batch), data_type(scale_type_), kStandard,
                               0, 0),
                  "rocblas_gemm_strided_batched_ex");
  }

  void* handle_ = nullptr;
};

} // namespace

std::unique_ptr<VendorProduct> make_rocblas_product(const Gemm& p, const VendorPlan& plan,
                                                    const CallOperands&) {
  return std::make_unique<RocblasProduct>(p, plan);
}

std::string why_no_rocblas() { return Library::why_not(); }

std::string rocblas_version() {
  const Library* rocblas = Library::open();
  char text[64] = "";
  if (!rocblas || rocblas->version(text, sizeof text) != 0) return "";
  return "rocblas " + std::string(text).substr(0, std::string(text).find('-'));
}

} // namespace deepgen::cuda
