// What can be timed of a problem at one size: kernels, those of a problem with ranges too, and the vendor.
#pragma once

#include "base/kernel/device.h"
#include "base/kernel/kernel.h"
#include "measure/race/options.h"
#include "measure/race/race.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace deepgen {

/// Of a GPU, before a race. full: for results that stand alone; brief: for candidates, which differ much;
/// kept: another race has just ended.
enum class Heat { full, brief, kept };

/// All arms but that which reads are in bursts where the options say that they are tuned for these.

class SizedField {
public:
  virtual ~SizedField() = default;

  /// The kernel must outlive the race, as the field must.
  virtual Arm kernel_arm(const std::string& name, const Kernel&) = 0;
  /// None where there is no vendor's library for it.
  virtual std::vector<Arm> vendor_arms() = 0;
  virtual std::string vendor_name() const = 0; ///< empty: none
  /// What people are told of its library: lines; none where it was not asked for.
  virtual std::vector<std::string> vendor_notes() const = 0;
  /// What the memory gives at best; nothing where the measurement has no kernel for that.
  virtual std::optional<Arm> read_arm() = 0;
  /// What a race on this device needs more.
  virtual void complete(RaceOptions&, Heat) = 0;
};

/// `fixed`: a problem without ranges, as it is at a size. `workspace`: of the kernel that needs most.
/// `vendor`: whether its library is asked for.
std::unique_ptr<SizedField> field_at(const Problem& fixed, const Device&, int64_t workspace,
                                     const MeasureOptions&, bool vendor);

} // namespace deepgen
