// What is timed on the CPU: kernels on the operands of a subject, on one thread or on
// as many as the problem is tuned for.
#pragma once

#include "base/kernel/kernel.h"
#include "measure/cpu/subject.h"

namespace deepgen {

/// Throws Error where this process may use fewer CPUs than the problem has threads. `kernel` and `operands`
/// must outlive the race.
Arm kernel_arm(const std::string& name, const Kernel& kernel, const TimingOperands& operands);

} // namespace deepgen
