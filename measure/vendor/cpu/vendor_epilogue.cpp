#include "measure/vendor/cpu/vendor_epilogue.h"

#include "measure/values/clones.h"
#include "runtime/cpu/epilogue_row.h"

#include <algorithm>

namespace deepgen {
namespace {

constexpr int64_t kPiece =
    1024; ///< columns that all steps have one after the other: they stay in the L1 cache

static_assert(int(RowStep::prelu) == int(EpilogueOp::prelu)); // both are numbered by the table

DEEPGEN_CLONES void apply(EpilogueOp op, float* row, int64_t n, const float* y, float low, float high) {
  apply_row(RowStep(op), row, n, y, low, high);
}
DEEPGEN_CLONES void apply(EpilogueOp op, double* row, int64_t n, const double* y, double low, double high) {
  apply_row(RowStep(op), row, n, y, low, high);
}

} // namespace

template <typename T>
VendorEpilogue<T>::VendorEpilogue(const Gemm& p, const CallBuffers& x)
    : gated_(p.gate.has_value()), m_(p.m), n_(p.n), ldd_(x.ldd), low_(T(x.clamp_low)),
      high_(T(x.clamp_high)) {
  if (p.gate) gate_ = *p.gate;
  const std::vector<StepOperand> operands = operands_of(p);
  for (EpilogueOp op : p.epilogue) {
    Step step{op};
    for (const StepOperand& operand : operands) {
      if (operand.op != op) continue;
      step.data = static_cast<const T*>(x.step(op).data);
      step.column = operand.shape == Operand::Shape::matrix || operand.shape == Operand::Shape::per_column;
      if (operand.shape == Operand::Shape::matrix)
        step.entry = x.step(op).stride, step.row = x.step(op).ld;
      else
        step.row = operand.shape == Operand::Shape::per_row;
    }
    steps_.push_back(step);
  }
}

template <typename T>
void VendorEpilogue<T>::run_piece(int64_t entry, int64_t r, int64_t begin, int64_t count, T* d,
                                  const T* sums) const {
  T* out = d + r * ldd_ + begin;
  if (gated_) {
    const T* gate = sums + r * 2 * n_ + begin;
    std::copy(gate, gate + count, out);
    apply(gate_, out, count, nullptr, T(0), T(0));
    apply(EpilogueOp::multiply, out, count, gate + n_, T(0), T(0));
  }
  for (const Step& step : steps_)
    apply(step.op, out, count,
          step.data ? step.data + entry * step.entry + r * step.row + begin * step.column : nullptr, low_,
          high_);
}

template <typename T>
void VendorEpilogue<T>::run(int64_t entry, T* d, const T* sums) const {
  if (empty()) return;
  for (int64_t r = 0; r < m_; ++r)
    for (int64_t begin = 0; begin < n_; begin += kPiece)
      run_piece(entry, r, begin, std::min(kPiece, n_ - begin), d, sums);
}

template class VendorEpilogue<float>;
template class VendorEpilogue<double>;

} // namespace deepgen
