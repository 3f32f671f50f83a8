// Products by cuBLASLt and hipBLASLt.
#include "measure/vendor/gpu/lt_library.h"
#include "measure/vendor/gpu/vendor_product.h"

#include <algorithm>
#include <cstring>

namespace deepgen::cuda {
namespace {

constexpr int kAskFor = 64;
constexpr uint32_t kMostAligned = 256; ///< bytes

bool is_fp8(Type t) { return t == Type::e4m3 || t == Type::e5m2; }
void* pointer(Address a) { return reinterpret_cast<void*>(a); }

class LtProduct final : public VendorProduct {
public:
  LtProduct(const Gemm& p, const VendorPlan& plan, const CallOperands& x)
      : VendorProduct(p, plan), lt_(LtLibrary::of_platform()) {
    const LtLibrary::Numbers& n = lt_.number;
    static void* const one = create(); // for all products of the process
    handle_ = one;
    check(lt_.desc_create(&desc_, lt_.compute_type(p.a, plan.tf32_as_f32), lt_data_type(scale_type_)),
          "MatmulDescCreate");
    set(n.trans_a, int32_t(p.b_transposed() ? n.transposed : n.plain));
    set(n.trans_b, int32_t(p.a_transposed() ? n.transposed : n.plain));
    if (is_fp8(p.a) && n.fast_accumulation >= 0) set(n.fast_accumulation, int8_t(1));
    int32_t epilogue = plan.activation == LtFusion::relu        ? lt_relu
                       : plan.activation == LtFusion::gelu_tanh ? lt_gelu
                                                                : 0;
    if (plan.fused_bias) epilogue |= lt_bias, set(n.bias_type, int32_t(lt_data_type(p.epilogue_type())));
    set(n.epilogue, epilogue ? epilogue : int32_t(lt_default));
    point(x);
    const std::vector<Part> all = parts(x);
    b_ = layout(p.b, all.front().b), a_ = layout(p.a, x.a), d_ = layout(output_, all.front().product);
    if (all.size() > 1)
      b_alignment_ = alignment(all[1].b.data), d_alignment_ = alignment(all[1].product.data);
    c_ = plan.fused_residual ? layout(p.epilogue_type(), x.step(EpilogueOp::residual)) : d_;
    if (n.loads_when_asked) LtProduct::algorithms(); // those that another process has found
  }

  std::vector<Vendor::Algorithm> algorithms() override {
    void* preference = nullptr;
    check(lt_.preference_create(&preference), "MatmulPreferenceCreate");
    check(lt_.preference_set(preference, lt_max_workspace, &vendor_workspace, sizeof vendor_workspace),
          "MatmulPreferenceSetAttribute");
    const LtLibrary::Numbers& n = lt_.number;
    if (n.align_a >= 0) // its default is the most
      for (auto [attribute, bytes] :
           {std::pair{n.align_a, b_alignment_}, {n.align_c, d_alignment_}, {n.align_d, d_alignment_}})
        check(lt_.preference_set(preference, attribute, &bytes, sizeof bytes),
              "MatmulPreferenceSetAttribute");
    // Each result is the algorithm, its workspace, its state, and six words of which nothing is known.
    const size_t algorithm_bytes = lt_.number.algorithm_bytes,
                 each = algorithm_bytes + sizeof(uint64_t) + 6 * sizeof(int32_t);
    std::vector<uint64_t> results(kAskFor * each / sizeof(uint64_t));
    int count = 0;
    lt_.heuristic(handle_, desc_, b_, a_, c_, d_, preference, kAskFor, results.data(),
                  &count); // a failure: none
    std::vector<Vendor::Algorithm> found;
    for (int i = 0; i < count; ++i) {
      const char* result = reinterpret_cast<const char*>(results.data()) + size_t(i) * each;
      Vendor::Algorithm a;
      int32_t state = 0;
      std::memcpy(a.bits.data(), result, algorithm_bytes);
      std::memcpy(&a.workspace, result + algorithm_bytes, sizeof a.workspace);
      std::memcpy(&state, result + algorithm_bytes + sizeof a.workspace, sizeof state);
      a.text = lt_.text_of(a.bits);
      if (state == 0) found.push_back(a);
    }
    return found;
  }

private:
  void multiply(const Vendor::Algorithm& algorithm, Address workspace, const CallOperands& x,
                Stream stream) override {
    point(x);
    const uint64_t alpha_bits = scalar_bits(alpha(x), scale_type_),
                   beta_bits = scalar_bits(beta(), scale_type_);
    for (const auto& [b, out] : parts(x)) {
      void* c = pointer(plan_.fused_residual ? x.step(EpilogueOp::residual).data : out.data);
      check(lt_.matmul(handle_, desc_, &alpha_bits, pointer(b.data), b_, pointer(x.a.data), a_, &beta_bits, c,
                       c_, pointer(out.data), d_, &algorithm.bits, pointer(workspace), algorithm.workspace,
                       stream),
            "Matmul");
    }
  }

  void* create() const {
    void* handle = nullptr;
    check(lt_.create(&handle), "Create");
    return handle;
  }
  void check(int code, const char* call) const {
    if (code != 0) throw DriverError(code, lt_.name + " status " + std::to_string(code), lt_.prefix + call);
  }
  template <typename T>
  void set(int attribute, T value) {
    check(lt_.desc_set(desc_, attribute, &value, sizeof value), "MatmulDescSetAttribute");
  }
  void point(const CallOperands& x) {
    if (plan_.fused_bias) set(lt_.number.bias_pointer, x.step(EpilogueOp::bias).data);
    if (plan_.fused_scales && problem_.has(EpilogueOp::scale_b))
      set(lt_.number.scale_a, x.step(EpilogueOp::scale_b).data);
    if (plan_.fused_scales && problem_.has(EpilogueOp::scale_a))
      set(lt_.number.scale_b, x.step(EpilogueOp::scale_a).data);
  }
  void* layout(Type type, const Array& x) const {
    void* layout = nullptr;
    check(lt_.layout_create(&layout, lt_data_type(type), uint64_t(x.columns), uint64_t(x.rows), x.ld),
          "MatrixLayoutCreate");
    const auto batch = int32_t(problem_.batch);
    const int64_t stride = x.stride;
    if (batch > 1) {
      check(lt_.layout_set(layout, lt_.number.batch_count, &batch, sizeof batch), "MatrixLayoutSetAttribute");
      check(lt_.layout_set(layout, lt_.number.batch_stride, &stride, sizeof stride),
            "MatrixLayoutSetAttribute");
    }
    return layout;
  }

  static uint32_t alignment(Address a) { return uint32_t(std::min<uint64_t>(a & -a, kMostAligned)); }

  const LtLibrary& lt_;
  uint32_t b_alignment_ = kMostAligned, d_alignment_ = kMostAligned;
  void *handle_ = nullptr, *desc_ = nullptr, *a_ = nullptr, *b_ = nullptr, *c_ = nullptr, *d_ = nullptr;
};

} // namespace

std::unique_ptr<VendorProduct> make_lt_product(const Gemm& p, const VendorPlan& plan, const CallOperands& x) {
  return std::make_unique<LtProduct>(p, plan, x);
}

} // namespace deepgen::cuda
