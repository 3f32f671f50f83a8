# The whole flow for an AMD GPU that is simulated: search, verify, lock, embed, link, run. libamdhip64.so is the tests' own;
# it checks launches and packs arguments as the code object says, and the simulator runs the LLVM IR that the code was made
# from. The device's time is made up and the same for all: what decides is the cost model.
set(ENV{DEEPGEN_HIP_DRIVER} ${FAKE_HIP})
set(ENV{FAKE_HIP_HOOK} ${AMD_SIM_HOOK})
set(ENV{FAKE_HIP_REPLAYS} 0) # what a graph replays was verified; it takes its time, and is not simulated again
set(ENV{DEEPGEN_KEEP_IR} ${WORK}/ir)
set(mi300x "gfx942:sramecc+:xnack- AMD Instinct MI300X")
set(ENV{FAKE_HIP_DEVICES} "${mi300x}")
set(attached -DDEEPGEN_ATTACHED_GPUS=gfx942 -DDEEPGEN_ATTACHED_GPU_COUNT=1)

function(expect_records file status count)
  file(READ ${WORK}/${file} records)
  string(REGEX MATCHALL "\"status\":\"${status}\"" found "${records}")
  list(LENGTH found found)
  if(NOT found EQUAL count)
    message(FATAL_ERROR "${found} records say ${status}, not ${count}:\n${records}")
  endif()
endfunction()

configure(hip_search build ${attached} -DDEEPGEN_MEASURE_SECONDS=8)
build(build -v)
expect("deepgen-measure run" "deepgen-measure playoff" "--regime balanced" "--no-awkward" "--finalist 4" "--awkward up/gfx942/final/f0.dgk")
set(search build/_deepgen/kernels/up/gfx942)
file(STRINGS ${WORK}/${search}/r0/s00.dgk output LIMIT_COUNT 1) # finalists alone have a kernel for an awkward shape
expect_not("\"role\":\"awkward\"")
file(STRINGS ${WORK}/${search}/final/f0.dgk output LIMIT_COUNT 1)
expect("\"role\":\"awkward\"")
expect_records(${search}/r0/records.jsonl ok 4)
file(READ ${WORK}/${search}/final.jsonl output)
expect("\"regime\":\"balanced\"" "\"serial\":{\"rounds\"" "\"sustained\":{\"rounds\"")
string(REGEX MATCHALL "\"bursts\":{\"seconds\"" in_bursts "${output}") # of the default and another finalist at least, and again
list(LENGTH in_bursts in_bursts)
if(in_bursts LESS 4)
  message(FATAL_ERROR "${in_bursts} records have times in bursts:\n${output}")
endif()
expect("AMD Instinct MI300X" "\"holdout\"" "HIP 60000000" "hipblaslt 1.2.3" "fused bias+relu")
run(build/app)
expect("right: ")
expect_null_build(build)

tune(build)
expect("the default config")
run(${PREFIX}/bin/deepgen lock show --lock hip_search/deepgen.lock.json)
expect("gfx942" "AMD Instinct MI300X" "the default config" "tuned for balanced calls" "bursts: " "serial: " "sustained: ")

# The same library from the lock on a host without the device; and its kernel runs on no other arch.
set(ENV{FAKE_HIP_DEVICES} "")
configure(hip_search frozen -DDEEPGEN_MODE=frozen)
build(frozen -v)
expect_not(${search_edges})
foreach(folder build frozen) # but for the comment on where configs are from
  file(READ ${WORK}/${folder}/_deepgen/kernels/kernels.cpp text)
  string(REGEX REPLACE "found by this build's search|from the lock" "" text "${text}")
  file(WRITE ${WORK}/${folder}.cpp "${text}")
endforeach()
expect_equal_files(build.cpp frozen.cpp)
set(ENV{FAKE_HIP_DEVICES} "gfx90a:sramecc+:xnack- AMD Instinct MI210")
run_failing(frozen/app)
expect("no linked kernel runs on this device")
set(ENV{FAKE_HIP_DEVICES} "${mi300x}")
run(frozen/app)
expect("right: ")

# Wrong kernels are refused: one forgets the epilogue, one writes a row too many, one lacks barriers.
# Here HIP stands alone, without libraries that could be a baseline.
file(REMOVE ${WORK}/hip_search/deepgen.lock.json)
file(COPY ${FAKE_HIP} DESTINATION ${WORK}/alone)
get_filename_component(name ${FAKE_HIP} NAME)
set(ENV{DEEPGEN_HIP_DRIVER} ${WORK}/alone/${name})
configure(hip_search faulty ${attached} -DDEEPGEN_EXECUTABLE=${FAULTY} -DDEEPGEN_SLOTS=4 -DDEEPGEN_MEASURE_SECONDS=8
  -DDEEPGEN_REGIME=burst)
build(faulty)
file(READ ${WORK}/faulty/_deepgen/kernels/up/gfx942/r0/records.jsonl log)
if(NOT log MATCHES "\"regime\":\"burst\"")
  message(FATAL_ERROR "the round does not say that it was timed in bursts:\n${log}")
endif()
expect("race") # from the simulated device
expect("no vendor baseline: no hipBLASLt here")
foreach(status ok wrong out_of_bounds crash)
  expect_records(faulty/_deepgen/kernels/up/gfx942/r0/records.jsonl ${status} 1)
endforeach()
run(faulty/app)
expect("right: faulty_gpu fault=0")
