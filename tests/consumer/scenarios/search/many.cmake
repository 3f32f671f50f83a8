# Behind the first searches of a build tree, one edge compiles many slots: the same kernels and the same search, and a build
# that does not grow by an edge a candidate.
file(APPEND ${WORK}/quick.cmake "set(CMAKE_PROJECT_INCLUDE ${WORK}/few.cmake CACHE STRING \"\")\n")
file(WRITE ${WORK}/few.cmake "
function(deepgen_few)
  set_property(GLOBAL PROPERTY DEEPGEN_SINGLE_SLOTS 1)
  set_property(GLOBAL PROPERTY DEEPGEN_SLOTS_PER_EDGE 3)
endfunction()
cmake_language(DEFER CALL deepgen_few)
") # before the library is finished
configure(basic build)
build(build -v)
expect("--slot 3 " "--slot 0 --count 3" "--slot 3 --count 1" "-o down/cpu/r0/s03.list")
run(build/app)
expect(ok)
expect_null_build(build)
expect_file(build/_deepgen/kernels/down/cpu/r0/s03.dgk)
file(STRINGS ${WORK}/build/_deepgen/kernels/down/cpu/r0/s00.list list)
file(SHA256 ${WORK}/build/_deepgen/kernels/down/cpu/r0/s01.dgk hash)
if(NOT "${hash}  s01.dgk" IN_LIST list)
  message(FATAL_ERROR "the list is not of the kernels: ${list}")
endif()
tune(build)
expect_file(basic/deepgen.lock.json)

# Slots that are compiled again to the same kernels leave their list alone: nothing is measured anew.
file(REMOVE ${WORK}/basic/deepgen.lock.json)
run(${CMAKE_COMMAND} -E touch build/_deepgen/kernels/down/cpu/r0/plan.json)
build(build -v)
expect("--slot 0 --count 3")
expect_not("deepgen-measure run" "deepgen-measure playoff")
expect_null_build(build)

# All slots as files of single edges have the same bytes.
file(COPY ${WORK}/build/_deepgen/kernels/down/cpu/r0 DESTINATION ${WORK}/grouped)
run(${PREFIX}/bin/deepgen compile --plan grouped/r0/plan.json --slot 2 -o single.dgk)
expect_equal_files(single.dgk grouped/r0/s02.dgk)
