#include "measure/cpu/gemm_subject.h"

#include "measure/cpu/invariant_cases.h"
#include "measure/cpu/packed_operand.h"
#include "measure/cpu/ranged_cases.h"
#include "measure/cpu/thread_call.h"
#include "measure/vendor/cpu/onednn.h"
#include "measure/vendor/cpu/vendor.h"

#include <algorithm>
#include <cstring>

namespace deepgen {
namespace {

/// Timed at the largest sizes: for others, ask for the subject of the problem at these.
class GemmSubject : public Subject {
public:
  explicit GemmSubject(const Gemm& p) : verified_(p), problem_(p.ranged() ? p.at(p.sizes()) : p) {}

  std::unique_ptr<CaseSet> cases(uint64_t seed) const override {
    std::unique_ptr<CaseSet> set;
    if (verified_.ranged())
      set = std::make_unique<RangedCases>(verified_, seed);
    else
      set = std::make_unique<GemmCases>(problem_, seed);
    if (!verified_.batch_invariant) return set;
    return std::make_unique<InvariantCases>(verified_, seed, std::move(set));
  }
  double case_bytes() const override {
    return (verified_.ranged() ? ranged_case_bytes(verified_) : deepgen::case_bytes(problem_)) +
           (verified_.batch_invariant ? invariant_case_bytes(verified_) : 0);
  }
  std::unique_ptr<TimingOperands> operands(int64_t workspace, uint64_t seed) const override {
    const int64_t pieces = shared_by(problem_);
    return std::make_unique<GemmOperands>(problem_, workspace_piece(workspace) * pieces, seed);
  }
  /// On as many threads as calls are timed on. Of f32 oneDNN is what a user would run who packs weights,
  /// which OpenBLAS does not; and of several threads where something follows the product, which is a pass on
  /// one thread behind OpenBLAS.
  Baseline baseline() const override {
    const bool of_blas = (problem_.a == Type::f32 || problem_.a == Type::f64) && problem_.a == problem_.b;
    const bool fused = shared_by(problem_) > 1 && (!problem_.epilogue.empty() || problem_.gate);
    if (!of_blas || fused || problem_.packed_b)
      if (Baseline found = onednn(); !of_blas || fused || !found.name.empty()) return found;
    std::string why;
    const std::optional<Vendor> vendor = Vendor::open(&why);
    if (!vendor)
      return {"",
              why.empty() ? "no OpenBLAS here, so no vendor baseline; install libopenblas0 for one"
                          : "OpenBLAS is here and of no use, so no vendor baseline: " + why,
              nullptr};
    return {vendor->name(), "", [vendor = *vendor, p = problem_](const TimingOperands& operands) {
              const auto& dense = dynamic_cast<const GemmOperands&>(operands);
              return timed(
                  vendor.name(), shared_by(p),
                  [vendor, p, &dense] { return vendor.prepare(p, dense.buffers()); },
                  [vendor](int threads) { vendor.use_threads(threads); });
            }};
  }

private:
  using Call = std::function<void()>;
  static Arm timed(const std::string& name, int threads, const std::function<Call()>& prepare,
                   const std::function<void(int)>& use_threads) {
    if (threads == 1) return {name, prepare};
    return {.name = name,
            .make = prepare,
            .threads = threads,
            .start =
                [=] {
                  use_threads(threads);
                  if (const Call call = prepare()) call(); // those of OpenMP start with the first call
                },
            .rest = vendor_rest};
  }

  /// Types that a BLAS does not multiply.
  Baseline onednn() const {
    std::string why;
    const std::optional<OneDnn> library = OneDnn::open(&why);
    if (!library)
      return {"",
              why.empty() ? "no oneDNN 2 here, so no vendor baseline; install libdnnl2 for one"
                          : "oneDNN is here and of no use, so no vendor baseline: " + why,
              nullptr};
    if (!library->serves(problem_))
      return {"", library->name() + " has no primitive for this problem, so no vendor baseline", nullptr};
    if (shared_by(problem_) > 1 && !library->use_threads(1))
      return {"", library->name() + " has no threads that can be set, so no vendor baseline", nullptr};
    return {library->name(), "", [library = *library, p = problem_](const TimingOperands& operands) {
              const auto& dense = dynamic_cast<const GemmOperands&>(operands);
              return timed(
                  library.name(), shared_by(p),
                  [library, p, &dense] {
                    return library.prepare(p, dense.buffers(),
                                           p.packed_b ? OneDnn::Weights::packed : OneDnn::Weights::plain);
                  },
                  [library](int threads) { library.use_threads(threads); });
            }};
  }

  Gemm verified_, problem_;
};

} // namespace

GemmOperands::GemmOperands(const Gemm& p, int64_t workspace, uint64_t seed)
    : problem_(p), inputs_(p, seed, false),
      d_(size_t(p.m * p.n * p.batch * size_of(p.d)), 5, Begins::as_malloc),
      workspace_(size_t(std::max<int64_t>(workspace, 1)), 0),
      packed_b_(size_t(std::max<int64_t>(packed_bytes(p), 1)), 7) {
  if (p.packed_b) pack_b(p, buffers(), packed_b_.data()); // once: calls are timed without it
}

CallBuffers GemmOperands::buffers() const {
  const Gemm& p = problem_;
  CallBuffers x;
  x.a = inputs_.a.data(), x.lda = p.a_columns(), x.stride_a = p.m * p.k;
  x.b = inputs_.b.data(), x.ldb = p.b_columns(), x.stride_b = p.k * p.sum_columns();
  x.d = d_.data(), x.ldd = x.ldc = p.n, x.stride_d = x.stride_c = p.m * p.n;
  for (const StepOperand& operand : operands_of(p)) {
    CallBuffers::Step& step = x.step(operand.op);
    step.data = inputs_.operand(operand.op).data();
    if (operand.is_matrix()) step.ld = p.n, step.stride = p.m * p.n;
  }
  x.clamp_low = inputs_.clamp_low, x.clamp_high = inputs_.clamp_high;
  x.alpha = inputs_.unit_alpha;
  x.workspace = workspace_.data();
  x.packed_b = packed_b_.data();
  return x;
}

void GemmOperands::touch() const {
  std::memset(d_.data(), 0, d_.size());
  std::memset(workspace_.data(), 0, workspace_.size());
}

std::unique_ptr<Subject> subject_of(const Gemm& p) { return std::make_unique<GemmSubject>(p); }

} // namespace deepgen
