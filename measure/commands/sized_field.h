// What can be timed of a problem at one size: kernels, those of a problem with ranges too, and the vendor.
#pragma once

#include "base/kernel/device.h"
#include "base/kernel/kernel.h"
#include "measure/race/options.h"
#include "measure/race/race.h"

#include <memory>
#include <string>
#include <vector>

namespace deepgen {

class SizedField {
public:
  virtual ~SizedField() = default;

  /// The kernel must outlive the race, as the field must.
  virtual Arm kernel_arm(const std::string& name, const Kernel&) = 0;
  /// None where there is no vendor's library for it.
  virtual std::vector<Arm> vendor_arms() = 0;
  virtual std::string vendor_name() const = 0; ///< empty: none
  /// What a race on this device needs more.
  virtual void complete(RaceOptions&) = 0;
};

/// `fixed`: the problem at its size, without ranges. `workspace`: of the kernel that needs most. `vendor`:
/// whether its library is asked for.
std::unique_ptr<SizedField> field_at(const Problem& fixed, const Device&, int64_t workspace,
                                     const MeasureOptions&, bool vendor);

} // namespace deepgen
