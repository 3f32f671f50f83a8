# A library of the matrix products of a module of MLIR.
#
#   deepgen_add_mlir(<target> FILE x.mlir [MANIFEST x.mlir.json] [CALLS x.calls.mlir]
#                    [SEARCH s] [SEARCH_FILE f] [BUDGET quick|default|thorough] [REGIME r] [SLOTS n ...] [UNTUNED]
#                    [ARCHS ...] [NAMESPACE ns] [LOCK_FILE path])
#
# MANIFEST is what `deepgen import x.mlir -o x.mlir.json` has written, one function a line: x.mlir.json beside FILE unless given.
# It names the module's SHA-256, and a module that has changed since is refused. A function of the module that is one
# product with what belongs to it becomes a function of its name; of others each product is <function>_<i>.
# With `cpu` in ARCHS each function also has a form that code of MLIR calls: <namespace>_<name>_memref, over memrefs.
# CALLS, relative to the binary folder, is the module with these calls in the place of its products; the target
# <target>.calls writes it. That alone needs a `deepgen` that reads MLIR.
# The other keywords are those of deepgen_add_gemm() (DeepGen.cmake).
include_guard(GLOBAL)
cmake_policy(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/DeepGenWorkload.cmake)

function(deepgen_add_mlir target)
  set(options UNTUNED)
  set(singles FILE MANIFEST CALLS NAMESPACE LOCK_FILE SEARCH SEARCH_FILE BUDGET FALLBACK REGIME)
  set(lists ARCHS SLOTS)
  set_property(GLOBAL PROPERTY DEEPGEN_FUNCTION deepgen_add_mlir)
  _deepgen_check_target_name("${target}")
  _deepgen_check_words(${target} "${options}" "${singles}" "${lists}" "${ARGN}" ${ARGC})
  cmake_parse_arguments(PARSE_ARGV 1 arg "${options}" "${singles}" "${lists}")
  _deepgen_read_manifest(${target} lines) # sets module and file
  foreach(line IN LISTS lines)
    string(REGEX MATCH "\"name\":\"([^\"]+)\",\"problem\":\"([^\"]+)\"" all "${line}")
    set(arg_NAME ${CMAKE_MATCH_1})
    set(key "${CMAKE_MATCH_2}")
    _deepgen_add_workload_problem(${target} "${key}" "-" plain)
  endforeach()
  _deepgen_memref_functions(${target})
  if(DEFINED arg_CALLS)
    _deepgen_calls_module(${target})
  endif()
  list(LENGTH lines count)
  message(STATUS "DeepGen: ${target} has ${count} functions of ${arg_FILE}")
endfunction()

# The lines of functions, whose form leaves nothing to CMake's lists; `module` and `file`, the paths of both files.
function(_deepgen_read_manifest target result)
  if(NOT DEFINED arg_FILE)
    _deepgen_fail(${target} FILE "" "is required" "FILE <x.mlir>, the module")
  endif()
  if(NOT DEFINED arg_MANIFEST)
    set(arg_MANIFEST ${arg_FILE}.json)
  endif()
  foreach(keyword FILE MANIFEST)
    cmake_path(ABSOLUTE_PATH arg_${keyword} BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE OUTPUT_VARIABLE path)
    _deepgen_check_printable(${target} ${keyword} "${path}")
    if(NOT EXISTS ${path})
      _deepgen_fail(${target} ${keyword} "${path}" "does not exist" "a module, and its manifest by `deepgen import ${arg_FILE} -o ${arg_MANIFEST}`")
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    _deepgen_read_text(${target} ${keyword} "${path}" text) # the last one is the manifest
    set(path_${keyword} ${path})
  endforeach()
  if(NOT text MATCHES "^{\n\"schema\":\"deepgen\\.mlir/1\",\n.*\n\"sha256\":\"([0-9a-f]+)\",\n")
    _deepgen_fail(${target} MANIFEST "${path_MANIFEST}" "is no manifest of a module" "deepgen.mlir/1, as `deepgen import ${arg_FILE} -o ${arg_MANIFEST}` writes it")
  endif()
  set(expected ${CMAKE_MATCH_1})
  file(SHA256 ${path_FILE} hash)
  if(NOT hash STREQUAL expected)
    _deepgen_fail(${target} FILE "${path_FILE}" "is not the module that ${arg_MANIFEST} was made of" "to import it again: deepgen import ${arg_FILE} -o ${arg_MANIFEST}")
  endif()
  string(REGEX MATCHALL "\n{\"name\":\"[A-Za-z0-9_]+\",\"problem\":\"[a-z0-9_=+ ]+\",\"function\":" lines "${text}")
  string(REGEX MATCHALL "\"problem\":" all "${text}")
  list(LENGTH lines count)
  list(LENGTH all wanted)
  if(NOT count EQUAL wanted OR count EQUAL 0)
    _deepgen_fail(${target} MANIFEST "${path_MANIFEST}" "has ${wanted} functions, and ${count} of them are in the form that `deepgen import` writes"
      "an unchanged manifest; `deepgen import ${arg_FILE} -o ${arg_MANIFEST}` writes it anew")
  endif()
  set(${result} "${lines}" PARENT_SCOPE)
  set(module "${path_FILE}" PARENT_SCOPE)
  set(file "${path_MANIFEST}" PARENT_SCOPE)
endfunction()

# <target>_memref.cpp, a source of the library. Reads file.
function(_deepgen_memref_functions target)
  get_target_property(archs ${target} DEEPGEN_ARCHS)
  if(NOT "cpu" IN_LIST archs)
    return()
  endif()
  get_target_property(namespace ${target} DEEPGEN_NAMESPACE)
  get_property(tool GLOBAL PROPERTY DEEPGEN_TOOL)
  get_target_property(known ${target} DEEPGEN_MODULES)
  if(NOT known)
    set(known "")
  endif()
  list(LENGTH known number)
  set(name ${target}_memref${number})
  set_target_properties(${target} PROPERTIES DEEPGEN_MODULES "${known};${file}")
  set(source ${CMAKE_CURRENT_BINARY_DIR}/_deepgen/${target}/${name}.cpp)
  add_custom_command(OUTPUT ${source}
    COMMAND ${tool} mlir --manifest ${file} --namespace ${namespace} --header ${target}.h --shim ${source}
    DEPENDS ${file} ${CMAKE_BINARY_DIR}/_deepgen/codegen.id VERBATIM COMMENT "DeepGen: ${target}: writing the functions over memrefs")
  add_custom_target(${name} DEPENDS ${source})
  add_dependencies(${name} deepgen.setup)
  set_target_properties(${name} PROPERTIES FOLDER DeepGen)
  target_sources(${target} PRIVATE ${source})
  set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES GENERATED ON
    COMPILE_OPTIONS "-w" SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
  add_dependencies(${target} ${name})
endfunction()

# Reads module and file.
function(_deepgen_calls_module target)
  get_target_property(archs ${target} DEEPGEN_ARCHS)
  if(NOT "cpu" IN_LIST archs)
    list(JOIN archs " " text)
    _deepgen_fail(${target} CALLS "${arg_CALLS}" "wants functions over memrefs, which ARCHS ${text} does not have" "cpu among ARCHS")
  endif()
  get_target_property(namespace ${target} DEEPGEN_NAMESPACE)
  get_property(tool GLOBAL PROPERTY DEEPGEN_TOOL)
  cmake_path(ABSOLUTE_PATH arg_CALLS BASE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR} NORMALIZE OUTPUT_VARIABLE calls)
  _deepgen_check_printable(${target} CALLS "${calls}")
  add_custom_command(OUTPUT ${calls}
    COMMAND ${tool} mlir --manifest ${file} --namespace ${namespace} --module ${module} --calls ${calls}
    DEPENDS ${file} ${module} ${CMAKE_BINARY_DIR}/_deepgen/codegen.id VERBATIM COMMENT "DeepGen: ${target}: writing the module with calls")
  add_custom_target(${target}.calls DEPENDS ${calls})
  add_dependencies(${target}.calls deepgen.setup)
  set_target_properties(${target}.calls PROPERTIES FOLDER DeepGen)
endfunction()
