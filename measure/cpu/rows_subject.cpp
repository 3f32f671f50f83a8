#include "measure/cpu/rows_cases.h"
#include "measure/cpu/subject.h"

#include <algorithm>
#include <cstring>

namespace deepgen {
namespace {

class RowsOperands : public TimingOperands {
public:
  RowsOperands(const Rows& p, int64_t workspace, uint64_t seed)
      : problem_(p), inputs_(p, seed), d_(size_t(p.m * p.n * size_of(p.d)), 5, Begins::as_malloc),
        residual_out_(size_t(p.output_residual ? p.m * p.n * size_of(p.x) : 0), 6, Begins::as_malloc),
        row_scales_(size_t(p.quantised() ? p.m * size_of(Type::f32) : 0), 7, Begins::as_malloc),
        workspace_(size_t(std::max<int64_t>(workspace, 1)), 0) {}

  SlotValues values() const override {
    RowsCall x;
    x.x = inputs_.x.data(), x.residual = inputs_.residual.data();
    x.scale = inputs_.scale.data(), x.bias = inputs_.bias.data();
    x.d = d_.data(), x.residual_out = residual_out_.data();
    x.row_scales = reinterpret_cast<float*>(row_scales_.data());
    x.ldx = x.ld_residual = x.ldd = x.ld_residual_out = problem_.n;
    x.epsilon = 1e-5;
    x.workspace = workspace_.data();
    return values_of(x);
  }
  void touch() const override {
    for (const PageBuffer* written : {&d_, &residual_out_, &row_scales_, &workspace_})
      if (written->size()) std::memset(written->data(), 0, written->size());
  }

private:
  Rows problem_;
  RowsInputs inputs_;
  PageBuffer d_, residual_out_, row_scales_, workspace_;
};

class RowsSubject : public Subject {
public:
  explicit RowsSubject(const Rows& p) : problem_(p) {}

  std::unique_ptr<CaseSet> cases(uint64_t seed) const override {
    return std::make_unique<RowsCases>(problem_, seed);
  }
  double case_bytes() const override { return deepgen::case_bytes(problem_); }
  std::unique_ptr<TimingOperands> operands(int64_t workspace, uint64_t seed) const override {
    return std::make_unique<RowsOperands>(problem_, workspace, seed);
  }
  Baseline baseline() const override {
    return {"", "no vendor baseline: BLAS libraries have no softmax and no normalisation", nullptr};
  }

private:
  Rows problem_;
};

} // namespace

std::unique_ptr<Subject> subject_of(const Rows& p) { return std::make_unique<RowsSubject>(p); }

} // namespace deepgen
