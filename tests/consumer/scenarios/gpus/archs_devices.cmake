# A library for several archs on GPUs that a driver of the tests pretends to be: which of its kernels runs.
run(${PREFIX}/bin/deepgen --codegen-id)
set(code "a cubin")
if(output MATCHES "without ptxas")
  set(code PTX)
endif()
configure(archs build -DDEEPGEN_MODE=lock)
build(build)
set(ENV{DEEPGEN_CUDA_DRIVER} ${FAKE_CUDA})

set(ENV{FAKE_CUDA_DEVICE} "9.0 NVIDIA H100")
run(build/app)
expect("launch of deepgen_kernel, ${code} for 90" "thin: success" "half: success" "prepare: success")
expect_not("for 80")

set(ENV{FAKE_CUDA_DEVICE} "8.6 NVIDIA A10") # code for 8.0 runs there
run(build/app)
expect("launch of deepgen_kernel, ${code} for 80" "thin: success" "half: no linked kernel runs on this device")
expect_not("for 90")

set(ENV{FAKE_CUDA_DEVICE} "12.0 NVIDIA GeForce RTX 5090") # the PTX of the latest arch
run(build/app)
expect("launch of deepgen_kernel, PTX for 90" "thin: success" "half: success")
expect_not("for 80" "a cubin")

set(ENV{FAKE_CUDA_DEVICE} "7.5 Tesla T4")
run(build/app)
expect("thin: no linked kernel runs on this device" "half: no linked kernel runs on this device")
expect_not("launch of")
