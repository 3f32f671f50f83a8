# cmake -DSOURCE=<DeepGen> -DCXX=<compiler> -DWORK=<folder> -P sites_cmake.cmake
#
# What DEEPGEN_SITES makes of a build's graph, and what a bad file is told. Nothing is built.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${WORK})
file(WRITE ${WORK}/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)
project(sites CXX)
add_library(runtime INTERFACE)
add_library(DeepGen::runtime ALIAS runtime)
include(${SOURCE}/cmake/DeepGen.cmake)
deepgen_add_gemm(lib NAME a SHAPE 64 8 8 TYPES f32 f32 f32)
deepgen_add_gemm(lib NAME b SHAPE 65 8 8 TYPES f32 f32 f32)
")

# Sets graph, output and status. `sites`: text of the file; empty: no file is named.
function(configure sites mode)
  file(REMOVE_RECURSE ${WORK}/build)
  set(option "")
  if(NOT sites STREQUAL "")
    file(WRITE ${WORK}/sites.json "${sites}")
    set(option -DDEEPGEN_SITES=${WORK}/sites.json)
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} -G Ninja -S ${WORK} -B ${WORK}/build ${option} -DDEEPGEN_MODE=${mode} -DDEEPGEN_SLOTS=5 ${other_options}
    -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_COMPILER_WORKS=TRUE -DCMAKE_CXX_ABI_COMPILED=TRUE -DDEEPGEN_ATTACHED_GPUS= -DDEEPGEN_ATTACHED_GPU_COUNT=0
    -DDEEPGEN_EXECUTABLE=/bin/true -DDEEPGEN_MEASURE_EXECUTABLE=/bin/true OUTPUT_VARIABLE text ERROR_VARIABLE text RESULT_VARIABLE status)
  string(REGEX REPLACE "[ \n]+" " " text "${text}")
  set(graph "")
  if(status EQUAL 0)
    file(READ ${WORK}/build/build.ninja graph)
    file(READ ${WORK}/build/CMakeFiles/rules.ninja rules)
    string(APPEND graph "${rules}")
  endif()
  set(graph "${graph}" PARENT_SCOPE)
  set(output "${text}" PARENT_SCOPE)
  set(status "${status}" PARENT_SCOPE)
endfunction()

function(expect text what)
  foreach(words IN LISTS ARGN)
    string(FIND "${text}" "${words}" at)
    if(at EQUAL -1)
      message(SEND_ERROR "${what} lacks: ${words}")
    endif()
  endforeach()
endfunction()
function(expect_not text what)
  foreach(words IN LISTS ARGN)
    string(FIND "${text}" "${words}" at)
    if(NOT at EQUAL -1)
      message(SEND_ERROR "${what} should not have: ${words}")
    endif()
  endforeach()
endfunction()

configure("" auto)
expect("${graph}" "a graph without sites" "true run --plan" "true compile --plan" "a/cpu/r0/plan.json")
expect_not("${graph}" "a graph without sites" "remote" "@")

# Two models of one arch, one of them compiled here; `n` is false to CMake, and a name to people.
set(two "{\"schema\":\"deepgen.sites/1\",\"sites\":[
 {\"name\":\"n\",\"arch\":[\"sm_90a\",\"cpu\"],\"compile\":[\"srun\"],\"compile_jobs\":16,\"measure\":[\"srun\",\"--gres=gpu:1\"],\"measure_jobs\":2,\"worker\":\"/w\"},
 {\"name\":\"h100\",\"arch\":\"sm_90a\",\"compile\":[\"srun\"],\"compile_jobs\":20,\"batch\":1,\"measure\":[],\"worker\":\"/w\"},
 {\"name\":\"third\",\"arch\":\"gfx942\",\"measure\":[\"ssh\",\"h\"],\"send\":true}]}")
configure("${two}" auto)
expect("${graph}" "a graph with sites" "pool deepgen_compile_n\n  depth = 20" "pool deepgen_measure_n\n  depth = 2" "pool deepgen_measure_h100\n  depth = 1"
  "--site n --board" "-- devices --arch sm_90a -o devices/sm_90a@n.json" "-- devices --arch sm_90a -o devices/sm_90a@h100.json"
  "-- compile --plan a/sm_90a@n/r0/plan.json --slot 4 --count 1" "-- compile --plan a/sm_90a@h100/r0/plan.json --slot 4 "
  "-- run --plan b/cpu@n/r0/plan.json" "-- playoff --device" "true compile --plan a/gfx942@third/r0/plan.json --slot 4 " "-- run --plan a/gfx942@third/r0/plan.json"
  "--on ${WORK}/build/_deepgen/devices/sm_90a@h100.json" "--records a/sm_90a@n/final.jsonl -o a/sm_90a/choice.json" "-- verify a/gfx942/winner.dgk")
expect_not("${graph}" "a graph with sites" "pool deepgen_compile_h100" "pool deepgen_compile_third")
configure("${two}" frozen)
expect("${graph}" "a frozen graph with sites" "true compile --choice a/sm_90a/choice.json --frozen")
expect_not("${graph}" "a frozen graph with sites" " remote ")

# A host that only starts.
set(other_options -DDEEPGEN_START_ONLY=ON)
string(REPLACE "\"measure\":[\"ssh\"" "\"compile\":[],\"measure\":[\"ssh\"" all "${two}")
foreach(mode auto lock frozen)
  configure("${all}" ${mode})
  expect("${graph}" "a graph of a host that only starts" "-- compile --choice a/sm_90a/choice.json" "-- verify a/cpu/winner.dgk" "-- compile --choice a/gfx942/choice.json")
  expect_not("${graph}" "a graph of a host that only starts" "true compile" "true run" "true verify" "true playoff")
endforeach()

function(refuse sites)
  configure("${sites}" auto)
  if(status EQUAL 0)
    message(SEND_ERROR "should be refused: ${sites}")
  endif()
  expect("${output}" "the message" ${ARGN})
endfunction()
refuse("${two}" "DEEPGEN_START_ONLY 'ON' but site 'third' lacks \"compile\"")
refuse("{\"schema\":\"deepgen.sites/1\",\"sites\":[{\"name\":\"s\",\"arch\":\"cpu\",\"measure\":[],\"worker\":\"/w\"}]}"
  "DEEPGEN_START_ONLY 'ON' but site 's' lacks \"compile\"")
refuse("" "DEEPGEN_START_ONLY 'ON' but no site has cpu")
set(other_options "")
foreach(case
    "\"arch\":\"sm_7\",\"measure\":[]|has a site 's' whose field 'arch' has what is not served"
    "\"measure\":[]|site 's' whose field 'arch' is missing"
    "\"arch\":\"cpu\",\"meassure\":[]|site 's' whose field 'meassure' is unknown"
    "\"arch\":\"cpu\",\"measure\":\"srun\"|site 's' whose field 'measure' is no list of words"
    "\"arch\":\"cpu\",\"measure\":[],\"measure_jobs\":0|site 's' whose field 'measure_jobs' is no whole number in range: '0'"
    "\"arch\":\"cpu\",\"batch\":65,\"compile\":[]|site 's' whose field 'batch' is no whole number in range: '65'")
  string(REPLACE "|" ";" case "${case}")
  list(GET case 0 fields)
  list(GET case 1 why)
  refuse("{\"schema\":\"deepgen.sites/1\",\"sites\":[{\"name\":\"s\",${fields}}]}" "${why}")
endforeach()
refuse("{\"schema\":\"deepgen.sites/1\",\"sites\":[{\"name\":\"a/b\"}]}" "site 'number 1' whose field 'name' is no name: 'a/b'")
refuse("{\"schema\":\"deepgen.sites/1\",\"sites\":[]}" "has no site")
refuse("{\"schema\":\"deepgen.sites/9\"}" "is no sites.json")
refuse("not JSON" "is no sites.json")
