// What is attached to this machine.
#pragma once

#include "base/kernel/device.h"

namespace deepgen {

/// The device of `arch`: "cpu", "sm_..." or "gfx...". Throws Error for an arch of another form.
Device find_device(const std::string& arch);

/// What kernels may use of this CPU: base/kernel/cpu_isa.h. DEEPGEN_CPU_LEVEL lowers it.
int64_t isa_of_this_cpu();

/// One line for people about each attached device.
std::vector<std::string> list_devices();

} // namespace deepgen
