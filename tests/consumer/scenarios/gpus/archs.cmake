# Several archs in one library, without a GPU: GPU kernels are default configs, assembled where there is a ptxas; the CPU
# runs, the GPUs' functions report that there is no driver, and nothing links CUDA.
if(EXISTS /dev/nvidiactl OR EXISTS /proc/driver/nvidia)
  message(STATUS "this host has an NVIDIA driver: what holds without one is not tested")
  return()
endif()
configure(archs build)
expect("kernels: no sm_80, sm_90a device here" "gpu_only: no sm_90a device here")
build(build -v)
expect("deepgen-measure devices --arch sm_90a" "run --plan thin/cpu/r0/plan.json")
expect_not("--plan thin/sm_80" "--plan half/sm_90a" "playoff --device ${WORK}/build/_deepgen/devices/sm")
run(build/app)
expect(ok "thin: the GPU's driver library" "half: the GPU's driver library" "prepare: the GPU's driver library")
find_program(readelf readelf REQUIRED)
run(${readelf} -d build/app)
expect_not(cuda)
expect_null_build(build)
run(${CMAKE_COMMAND} --build build --target gpu_only.tune)
expect("nothing to tune here: no sm_90a device")

# The same kernels in another folder and mode: what is not tuned does not depend on the host.
configure(archs again -DDEEPGEN_MODE=lock)
build(again -v)
expect_not(${search_edges})
expect_equal_files(build/_deepgen/kernels/thin/sm_90a/winner.dgk again/_deepgen/kernels/thin/sm_90a/winner.dgk)
expect_equal_files(build/_deepgen/gpu_only/gpu_only.cpp again/_deepgen/gpu_only/gpu_only.cpp)

# Frozen: the GPUs' entries are missing, and all of them are named.
configure(archs frozen -DDEEPGEN_MODE=frozen)
run_failing(${CMAKE_COMMAND} --build frozen -- -k 0)
expect("kernels thin: missing" "on cpu" "on sm_80" "on sm_90a" "gpu_only half: missing")
