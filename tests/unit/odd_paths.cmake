# cmake -DSOURCE=<DeepGen> -DCXX=<compiler> -DWORK=<folder> -P odd_paths.cmake
#
# Source and build folders with odd names, and a lock in one: commands reach the tools word by word. The tools are a script
# that writes its outputs; consumer.odd_path runs the true ones in one such folder.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${WORK})
file(WRITE ${WORK}/tool [[#!/bin/sh
previous=
for word; do
  case $previous in
  -o | --source | --header) mkdir -p "$(dirname "$word")" && echo "int nothing;" > "$word" || exit 1 ;;
  --lock) [ -d "$(dirname "$word")" ] || { echo "no folder: $word"; exit 1; } ;;
  --problem) [ -f "$word" ] || { echo "no file: $word"; exit 1; } ;;
  esac
  previous=$word
done
]])
file(CHMOD ${WORK}/tool PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)

function(configure_in name)
  set(folder "${WORK}/${name}")
  file(WRITE "${folder}/source/CMakeLists.txt" "cmake_minimum_required(VERSION 3.25)\nproject(odd CXX)
add_library(runtime INTERFACE)\nadd_library(DeepGen::runtime ALIAS runtime)\ninclude(${SOURCE}/cmake/DeepGen.cmake)
deepgen_add_gemm(odd SHAPE 4 5 6 TYPES f32 f32 f32 SLOTS 2 1)\n")
  execute_process(COMMAND ${CMAKE_COMMAND} -G Ninja -S "${folder}/source" -B "${folder}/build" -DCMAKE_CXX_COMPILER=${CXX}
    -DCMAKE_CXX_COMPILER_WORKS=TRUE -DCMAKE_CXX_ABI_COMPILED=TRUE -DDEEPGEN_ARCHS=cpu -DDEEPGEN_EXECUTABLE=${WORK}/tool
    -DDEEPGEN_MEASURE_EXECUTABLE=${WORK}/tool
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  set(status ${status} PARENT_SCOPE)
  set(output "${output}" PARENT_SCOPE)
  set(folder "${folder}" PARENT_SCOPE)
endfunction()

# The names are put together, as a configure takes a second. What CMake, Ninja or a compiler's list of headers cannot have in
# any project is missing: \ ; " and line breaks, # < > |, and ' & * ? ^ `.
foreach(name "a b  c(d)[e]{f}" "a$b!c%20d~e=f+g,h" " a:b@c@d-e" "-é..日本.")
  configure_in("${name}")
  if(NOT status EQUAL 0)
    message(SEND_ERROR "${name}:\n${output}")
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} --build "${folder}/build" RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0 OR NOT EXISTS "${folder}/build/libodd.a")
    message(SEND_ERROR "${name}:\n${output}")
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} --build "${folder}/build" OUTPUT_VARIABLE output)
  if(NOT output MATCHES "no work to do")
    message(SEND_ERROR "${name}: the second build does something:\n${output}")
  endif()
endforeach()
foreach(name "a#b" "a<b" "a>b" "a|b")
  configure_in("${name}")
  string(REGEX REPLACE "[ \n]+" " " output "${output}") # CMake folds its messages
  if(status EQUAL 0 OR NOT output MATCHES "deepgen_add_gemm.*has one of # < > ")
    message(SEND_ERROR "${name}: ${status}\n${output}")
  endif()
endforeach()
