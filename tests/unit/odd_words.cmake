# cmake -DSOURCE=<DeepGen> -DWORK=<folder> -P odd_words.cmake
#
# Odd values for every keyword and cache variable: each works, or one message names the function, the target and what is
# allowed. An error of CMake's own is a defect, and so are two errors. With CASE it is the child that tries one of them.
cmake_minimum_required(VERSION 3.25)

# A call up to where the library would be created, which a script cannot do.
if(DEFINED CASE)
  file(READ ${WORK}/${CASE}.name name)
  file(READ ${WORK}/${CASE}.value value)
  set(DEEPGEN_ATTACHED_GPUS "" CACHE INTERNAL "")
  include(${SOURCE}/cmake/DeepGen.cmake)
  function(_deepgen_project_setup target)
    _deepgen_check_variables(${target})
    _deepgen_archs(${target} archs)
    message(FATAL_ERROR "the call is good")
  endfunction()
  set(target lib)
  set(arguments NAME up SHAPE 4 5 6 TYPES f32 f32 f32)
  if(name STREQUAL "target")
    set(target "${value}")
  elseif(name MATCHES "^DEEPGEN_")
    set(${name} "${value}")
  elseif(name STREQUAL "NAME")
    set(arguments SHAPE 4 5 6 TYPES f32 f32 f32)
  elseif(name STREQUAL "SHAPE")
    set(arguments 4 5 NAME up TYPES f32 f32 f32) # behind the odd one
  elseif(name STREQUAL "TYPES")
    set(arguments f32 f32 NAME up SHAPE 4 5 6)
  endif()
  if(name MATCHES "^(target|DEEPGEN_.*)$")
    deepgen_add_gemm("${target}" ${arguments})
  else()
    deepgen_add_gemm(lib ${name} "${value}" ${arguments})
  endif()
  return()
endif()

set(names target NAME SHAPE TYPES ACCUMULATE LAYOUT BATCH GROUPS GATED EPILOGUE SEARCH SEARCH_FILE BUDGET SLOTS ARCHS NAMESPACE
  LOCK_FILE DEEPGEN_ARCHS DEEPGEN_SEARCH DEEPGEN_SEARCH_FILE DEEPGEN_BUDGET DEEPGEN_SLOTS DEEPGEN_MEASURE_SECONDS DEEPGEN_MODE
  DEEPGEN_CACHE_DIR DEEPGEN_COMPILE_JOBS)
string(REPEAT "x" 5000 long)
string(REPEAT "9" 400 digits)
string(ASCII 27 escape)
set(count 0)
set(bad "")
file(MAKE_DIRECTORY ${WORK})

function(try name value)
  file(WRITE ${WORK}/${count}.name "${name}")
  file(WRITE ${WORK}/${count}.value "${value}")
  execute_process(COMMAND ${CMAKE_COMMAND} -DSOURCE=${SOURCE} -DWORK=${WORK} -DCASE=${count} -P ${CMAKE_CURRENT_LIST_FILE}
    WORKING_DIRECTORY ${WORK} OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
  string(REGEX MATCHALL "CMake (Error|Warning)" errors "${output}")
  list(LENGTH errors errors)
  string(REGEX REPLACE "[ \n]+" " " text "${output}")
  if(NOT status EQUAL 1 OR NOT errors EQUAL 1 OR NOT text MATCHES "the call is good|deepgen_add_gemm\\(.*Allowed: ")
    string(SUBSTRING "${name} '${value}'" 0 60 what)
    string(SUBSTRING "${output}" 0 1000 output)
    message(SEND_ERROR "${what}: status ${status}, ${errors} errors\n${output}")
  endif()
  if(text MATCHES "${escape}")
    message(SEND_ERROR "${name}: an escape sequence reaches the terminal")
  endif()
  math(EXPR count "${count} + 1")
  set(count ${count} PARENT_SCOPE)
endfunction()

foreach(name IN LISTS names)
  foreach(value "0" "-1" "1e3" "1.5" "${digits}" "a b" "\${HOME}" "@HOME@" "\\" "\"" "(" "]]" "é" "a\nb" "\n" "${escape}[31m" "SHAPE"
          "TRUE" "OFF" "NOTFOUND" "*" "../x" "--help" "\$<CONFIG>" "${long}" "nan")
    try(${name} "${value}")
  endforeach()
  try(${name} "") # what foreach() would skip or split
  try(${name} "a;b")
  try(${name} ";")
endforeach()
message(STATUS "${count} calls")
