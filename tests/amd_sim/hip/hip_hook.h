// The simulated device as what runs the launches of the fake HIP (tests/fake_hip): a kernel goes the whole
// way from its file through loading and argument packing, and its numbers come back through device memory.
#pragma once

#include "tests/fake_hip/fake_hip_hook.h"

#include <string>

namespace deepgen::amd_sim {

/// `ir` is what the code object was made from, as run_launch() takes it. Of other code it is looked for in
/// the folder $DEEPGEN_KEEP_IR, into which `deepgen compile` puts it.
void know(const std::string& code, const std::string& ir);

/// For fake_hip::state().hook. A fault is a line on stderr and the error of a kernel that failed (719); code
/// that is not known is one of the image (200).
int run_on_simulator(const fake_hip_launch* launch);

} // namespace deepgen::amd_sim
