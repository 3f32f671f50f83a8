// The toolbox of a device that takes no PTX: device memory is copied to the host, looked at there and copied
// back.
#pragma once

#include "measure/gpu/toolbox/cuda_operands.h"

namespace deepgen::cuda {

std::unique_ptr<const Toolbox> host_toolbox(const Context& context);

} // namespace deepgen::cuda
