# MINUTES are kept to: a search whose calls take too long for its share ends without a decision, and is named; the build and the
# other searches go on. What rounds and finals say that they have taken is no more than the share.
file(WRITE ${WORK}/quick.cmake "
set(CMAKE_PREFIX_PATH ${PREFIX} CACHE STRING \"\")
set(CMAKE_CXX_COMPILER ${CXX} CACHE STRING \"\")
set(DEEPGEN_MEASURE_SECONDS 2 CACHE STRING \"\")
")
run(${PREFIX}/bin/deepgen import minutes/calls.csv -o minutes/workload.json)
configure(minutes build)
expect("2 problems with 100.0 % of the time of workload.json")
tune(build)
expect("kernels m4096_n4096_k4096_f64_nt on cpu: keeps its default config:" "its share of MINUTES is")
expect("kernels m64_n64_k64_f32_nt on cpu:")
file(READ ${WORK}/minutes/deepgen.lock.json lock)
if(lock MATCHES "m=4096" OR NOT lock MATCHES "m=64")
  message(FATAL_ERROR "the lock has not the small problem alone:\n${lock}")
endif()
build(build)
expect("its share of MINUTES is")
build(build --target tune) # it does not begin again
expect_not("Measuring" "Playoff")

# Fewer minutes than all would take: those that are left out are named.
file(WRITE ${WORK}/minutes/many.csv "problem,calls,seconds\n")
foreach(n RANGE 1 30)
  file(APPEND ${WORK}/minutes/many.csv "gemm m=8 n=${n} k=8 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=none align=4,1,1e-${n}\n")
endforeach()
run(${PREFIX}/bin/deepgen import minutes/many.csv -o minutes/workload.json)
configure(minutes many -DDEEPGEN_MEASURE_SECONDS=5)
expect("budgets: 3 quick, 27 untuned; MINUTES 1 leave with default configs: m8_n4_k8_f32_nt, m8_n5_k8_f32_nt" "and 22 more")
