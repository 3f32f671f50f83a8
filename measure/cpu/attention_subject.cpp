#include "measure/cpu/attention_cases.h"
#include "measure/cpu/subject.h"
#include "measure/vendor/cpu/vendor_attention.h"

#include <algorithm>
#include <cstring>

namespace deepgen {
namespace {

class AttentionOperands : public TimingOperands {
public:
  AttentionOperands(const Attention& p, int64_t workspace, uint64_t seed)
      : problem_(p), inputs_(p, tuned_shape(p), seed),
        out_(size_t(inputs_.out_layout.rows() * inputs_.out_layout.columns() * size_of(p.out)), 5,
             Begins::as_malloc),
        lse_(size_t(p.lse ? 4 * inputs_.lse_count(p) : 0), 6, Begins::as_malloc),
        workspace_(size_t(std::max<int64_t>(workspace, 1)), 0) {}

  AttentionCall call() const {
    AttentionCall x;
    x.q = inputs_.q.data(), x.key = inputs_.key.data(), x.value = inputs_.value.data();
    x.out = out_.data(), x.sink = inputs_.sink.data(), x.workspace = workspace_.data();
    if (problem_.lse) x.lse = reinterpret_cast<float*>(lse_.data());
    x.q_layout = &inputs_.q_layout, x.key_layout = &inputs_.key_layout;
    x.value_layout = &inputs_.value_layout, x.out_layout = &inputs_.out_layout;
    x.bias = inputs_.bias.data(), x.bias_layout = &inputs_.bias_layout;
    x.shape = &inputs_.shape;
    if (problem_.paged()) x.page_table = inputs_.pages.table.data();
    return x;
  }
  SlotValues values() const override { return values_of(problem_, call()); }
  void touch() const override {
    for (const PageBuffer* written : {&out_, &lse_, &workspace_})
      if (written->size()) std::memset(written->data(), 0, written->size());
  }

private:
  Attention problem_;
  AttentionInputs inputs_;
  PageBuffer out_, lse_, workspace_;
};

class AttentionSubject : public Subject {
public:
  explicit AttentionSubject(const Attention& p) : problem_(p) {}

  std::unique_ptr<CaseSet> cases(uint64_t seed) const override {
    return std::make_unique<AttentionCases>(problem_, seed);
  }
  double case_bytes() const override { return deepgen::case_bytes(problem_); }
  std::unique_ptr<TimingOperands> operands(int64_t workspace, uint64_t seed) const override {
    return std::make_unique<AttentionOperands>(problem_, workspace, seed);
  }
  Baseline baseline() const override {
    if (std::string why = VendorAttention::why_not(problem_); !why.empty()) return {"", why, nullptr};
    if (problem_.windowed())
      return {"", "no vendor baseline: OpenBLAS multiplies what no window shows", nullptr};
    std::string why;
    const std::optional<Vendor> vendor = Vendor::open(&why);
    if (!vendor)
      return {"",
              why.empty() ? "no OpenBLAS here, so no vendor baseline; install libopenblas0 for one"
                          : "OpenBLAS is here and of no use, so no vendor baseline: " + why,
              nullptr};
    const std::string name = vendor->name() + " with a softmax";
    return {name, "", [vendor = *vendor, name, p = problem_](const TimingOperands& operands) {
              const auto& dense = dynamic_cast<const AttentionOperands&>(operands);
              return Arm{name, [vendor, p, &dense]() -> std::function<void()> {
                           auto composed = std::make_shared<VendorAttention>(vendor, p, dense.call());
                           return [composed] { composed->run(); };
                         }};
            }};
  }

private:
  Attention problem_;
};

} // namespace

std::unique_ptr<Subject> subject_of(const Attention& p) { return std::make_unique<AttentionSubject>(p); }

} // namespace deepgen
