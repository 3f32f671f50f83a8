# A library for AMD's GPUs beside NVIDIA's, on devices that libraries of the tests pretend to have: which kernel runs.
configure(hip build -DDEEPGEN_MODE=lock)
build(build -v)
expect_not(${search_edges})
set(ENV{DEEPGEN_HIP_DRIVER} /nonexistent/libamdhip64.so)
set(ENV{DEEPGEN_CUDA_DRIVER} /nonexistent/libcuda.so)
run(build/app)
expect("up: the GPU's driver library" "takes: nothing")
find_program(readelf readelf REQUIRED)
run(${readelf} -d build/app)
expect_not(hip cuda)

set(ENV{DEEPGEN_HIP_DRIVER} ${FAKE_HIP})
set(ENV{FAKE_HIP_TRACE} 1)
set(ENV{FAKE_HIP_DEVICES} "gfx942:sramecc+:xnack- AMD Instinct MI300X")
run(build/app)
expect("launch of deepgen_kernel for gfx942 on gfx942:sramecc+:xnack-" "up: success")
expect_not("refused" "for gfx1100")

set(ENV{FAKE_HIP_DEVICES} "gfx1100 Radeon RX 7900 XTX")
run(build/app)
expect("launch of deepgen_kernel for gfx1100 on gfx1100" "up: success")
expect_not("refused" "for gfx942")

set(ENV{FAKE_HIP_DEVICES} "gfx90a:sramecc+:xnack- AMD Instinct MI210")
run(build/app)
expect("up: no linked kernel runs on this device" "takes: nothing")

# Where a CUDA device is current, it is the one that is meant.
set(ENV{DEEPGEN_CUDA_DRIVER} ${FAKE_CUDA})
set(ENV{FAKE_CUDA_DEVICE} "9.0 NVIDIA H100")
set(ENV{FAKE_HIP_DEVICES} "gfx942:sramecc+:xnack- AMD Instinct MI300X")
run(build/app)
expect("launch of deepgen_kernel," "up: success")
expect_not("for gfx942")

# The driver's devices are known to the tools, too.
run(${PREFIX}/bin/deepgen doctor)
expect("ROCm HIP" "libhipblaslt.so" "librocblas.so" "gfx942 AMD Instinct MI300X, 304 compute units")
