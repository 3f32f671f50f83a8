# cmake -DSOURCE=<DeepGen> -DCXX=<compiler> -DWORK=<folder> -P configure_growth.cmake
#
# Configuring is linear in problems, and a further problem burdens Ninja with few edges. Times would depend on the machine:
# counted are the bytes of CMake's expanded trace, which grow with commands and with the lists that they are given, and the
# build statements.
cmake_minimum_required(VERSION 3.25)

# Sets trace and edges: bytes of the trace, and build statements.
function(configure op count mode locked)
  set(source ${WORK}/${op}${mode}${count})
  file(REMOVE_RECURSE ${source})
  set(text "cmake_minimum_required(VERSION 3.25)\nproject(many CXX)\nadd_library(runtime INTERFACE)\n"
    "add_library(DeepGen::runtime ALIAS runtime)\ninclude(${SOURCE}/cmake/DeepGen.cmake)\n")
  set(lock "")
  foreach(i RANGE 1 ${count})
    math(EXPR m "1000 + ${i}") # keys of one length
    if(op STREQUAL gemm)
      list(APPEND text "deepgen_add_gemm(many NAME f${m} SHAPE ${m} 8 8 TYPES f32 f32 f32 EPILOGUE bias)\n")
      set(key "gemm m=${m} n=8 k=8 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=bias align=4")
    else()
      list(APPEND text "deepgen_add_rows(many NAME f${m} SHAPE ${m} 8 TYPES f32 KIND layer_norm SCALE BIAS)\n")
      set(key "rows m=${m} n=8 x=f32 d=f32 kind=layer_norm options=scale+bias")
    endif()
    string(APPEND lock "{\"problem\":\"${key}\",\"arch\":\"cpu\"}\n")
  endforeach()
  list(JOIN text "" text)
  file(WRITE ${source}/CMakeLists.txt "${text}")
  if(locked)
    file(WRITE ${source}/deepgen.lock.json "${lock}")
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} -G Ninja -S ${source} -B ${source}/build --trace-expand --trace-redirect=${source}/trace
    -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_COMPILER_WORKS=TRUE -DCMAKE_CXX_ABI_COMPILED=TRUE -DDEEPGEN_MODE=${mode}
    -DDEEPGEN_ARCHS=cpu -DDEEPGEN_EXECUTABLE=/bin/true -DDEEPGEN_MEASURE_EXECUTABLE=/bin/true
    OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${output}")
  endif()
  file(SIZE ${source}/trace trace)
  file(STRINGS ${source}/build/build.ninja edges REGEX "^build ")
  list(LENGTH edges edges)
  file(REMOVE ${source}/trace)
  set(trace ${trace} PARENT_SCOPE)
  set(edges ${edges} PARENT_SCOPE)
endfunction()

# The second doubling adds twice what the first one added, within a twentieth.
function(expect_linear what first second third)
  math(EXPR small "${second} - ${first}")
  math(EXPR large "${third} - ${second}")
  math(EXPR most "2 * ${small} + ${small} / 10")
  message(STATUS "${what}: ${first}, ${second}, ${third}")
  if(large GREATER most)
    message(SEND_ERROR "${what} grow faster than the number of problems: ${first}, ${second}, ${third}")
  endif()
endfunction()

foreach(case "gemm frozen FALSE 4" "gemm lock FALSE 10" "gemm auto FALSE 10" "gemm auto TRUE 10" "rows frozen FALSE 4" "rows auto TRUE 10")
  separate_arguments(case)
  list(POP_FRONT case op mode locked most)
  set(name "${op}, ${mode}, locked ${locked}")
  foreach(count 40 80 160) # more than have an edge a slot
    configure(${op} ${count} ${mode} ${locked})
    set(trace_${count} ${trace})
    set(edges_${count} ${edges})
  endforeach()
  expect_linear("${name}: bytes of the trace" ${trace_40} ${trace_80} ${trace_160})
  expect_linear("${name}: build statements" ${edges_40} ${edges_80} ${edges_160})
  math(EXPR each "(${edges_160} - ${edges_80}) / 80")
  if(each GREATER most)
    message(SEND_ERROR "${name}: a further problem adds ${each} build statements, more than ${most}")
  endif()
endforeach()
