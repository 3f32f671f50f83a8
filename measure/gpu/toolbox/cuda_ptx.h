// measure/gpu/toolbox/cuda_kernels.ptx, embedded at build.
#pragma once

namespace deepgen::cuda {
extern const char cuda_kernels_ptx[];
} // namespace deepgen::cuda
