// What is timed on the CPU: kernels on the operands of a subject, one thread.
#pragma once

#include "base/kernel/kernel.h"
#include "measure/cpu/subject.h"

namespace deepgen {

/// `kernel` and `operands` must outlive the race.
Arm kernel_arm(const std::string& name, const Kernel& kernel, const TimingOperands& operands);

} // namespace deepgen
