#include "measure/commands/sized_field.h"

#include "measure/commands/vendor_facts.h"
#include "measure/cpu/arms.h"
#include "measure/gpu/cuda_bench.h"
#include "measure/gpu/cuda_workplace.h"
#include "measure/vendor/gpu/cuda_vendor.h"

#include <map>

namespace deepgen {
namespace {

class CpuField : public SizedField {
public:
  CpuField(const Problem& p, int64_t workspace, const MeasureOptions& o, bool vendor)
      : subject_(subject_of(p)), vendor_(vendor ? subject_->baseline() : Baseline()),
        operands_(subject_->operands(workspace, o.seed)) {}

  Arm kernel_arm(const std::string& name, const Kernel& kernel) override {
    return deepgen::kernel_arm(name, kernel, *operands_);
  }
  std::vector<Arm> vendor_arms() override {
    return vendor_.arm ? std::vector<Arm>{vendor_.arm(*operands_)} : std::vector<Arm>();
  }
  std::string vendor_name() const override { return vendor_.name; }
  std::vector<std::string> vendor_notes() const override {
    return vendor_.why_not.empty() ? std::vector<std::string>() : std::vector{vendor_.why_not};
  }
  std::optional<Arm> read_arm() override { return std::nullopt; }
  void complete(RaceOptions&, Heat) override {}

private:
  std::unique_ptr<Subject> subject_;
  Baseline vendor_;
  std::unique_ptr<TimingOperands> operands_;
};

/// Of all fields of a device: in a worker, those of further sizes find open what the first one has opened.
/// Never freed, as a process ends with what it has on its device.
std::shared_ptr<cuda::Workplace> workplace_of(const Device& device) {
  static auto& all = *new std::map<std::string, std::shared_ptr<cuda::Workplace>>;
  std::shared_ptr<cuda::Workplace>& place = all[device.uuid];
  if (!place) place = std::make_shared<cuda::Workplace>(device);
  return place;
}

class GpuField : public SizedField {
public:
  GpuField(const Problem& p, const Device& device, int64_t workspace, const MeasureOptions& o, bool vendor)
      : bench_(p, device, workspace, o.seed, o.caches, workplace_of(device)), regime_(o.regime) {
    if (vendor) vendor_ = cuda::baseline_of(p, device, o.seed);
  }

  Arm kernel_arm(const std::string& name, const Kernel& kernel) override {
    return in_first(bench_.kernel_arm(name, kernel));
  }
  std::vector<Arm> vendor_arms() override {
    std::vector<Arm> arms = cuda::vendor_arms(vendor_, bench_);
    for (Arm& arm : arms) arm = in_first(arm);
    return arms;
  }
  std::string vendor_name() const override { return vendor_.algorithms.empty() ? "" : vendor_.name; }
  std::vector<std::string> vendor_notes() const override { return deepgen::vendor_notes(vendor_); }
  std::optional<Arm> read_arm() override { return bench_.read_arm(); }
  void complete(RaceOptions& options, Heat heat) override {
    bench_.complete(options, heat == Heat::full    ? cuda::Bench::full_heat
                             : heat == Heat::brief ? cuda::Bench::brief_heat
                                                   : cuda::Bench::kept_heat);
    if (regime_ == TunedFor::burst) spare_rounds(options);
  }

private:
  Arm in_first(const Arm& arm) const {
    return regime_ == TunedFor::burst ? in_regime(arm, Regime::bursts) : arm;
  }

  cuda::Bench bench_;
  TunedFor regime_;
  cuda::Vendor vendor_;
};

} // namespace

std::unique_ptr<SizedField> field_at(const Problem& fixed, const Device& device, int64_t workspace,
                                     const MeasureOptions& o, bool vendor) {
  if (device.is_cpu()) return std::make_unique<CpuField>(fixed, workspace, o, vendor);
  return std::make_unique<GpuField>(fixed, device, workspace, o, vendor);
}

} // namespace deepgen
