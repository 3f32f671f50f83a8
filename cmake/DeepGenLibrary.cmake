# The library behind the first call of a target, and what each call adds to it, whatever the operator.
include_guard(GLOBAL)
cmake_policy(VERSION 3.25)
set_property(GLOBAL PROPERTY DEEPGEN_LIBRARY_FOLDER ${CMAKE_CURRENT_LIST_DIR}/library)

# Adds the problem of a key to the library `target`. Reads the keywords that all operators have from arg_* of the caller:
# NAME, NAMESPACE, ARCHS, LOCK_FILE, VENDORED, UNTUNED, FALLBACK, and those of DeepGenSearch.cmake. Behind the key, what problem.json has
# of _deepgen_points().
function(_deepgen_add_problem target key)
  _deepgen_check_identifier(${target} NAME "${arg_NAME}")
  set(_deepgen_ranged -1)
  if(key MATCHES "[.][.]| at=") # a size is a range, or it is tuned for several calls
    set(_deepgen_ranged 0)
  endif()
  _deepgen_search_options(${target} options)
  _deepgen_library(${target})
  _deepgen_check_archs_serve(${target} "${key}")
  get_property(known TARGET ${target} PROPERTY DEEPGEN_KEY_${arg_NAME} SET)
  if(known)
    get_target_property(names ${target} DEEPGEN_NAMES)
    list(JOIN names ", " names)
    _deepgen_fail(${target} NAME "${arg_NAME}" "is already in this library" "a name other than: ${names}")
  endif()
  get_target_property(namespace ${target} DEEPGEN_NAMESPACE)
  _deepgen_own_symbols(${target} ${namespace}_${arg_NAME})

  set(untuned false)
  if(arg_UNTUNED)
    set(untuned true)
  endif()
  _deepgen_fallback(${target} "${key}" fallback)
  set(fallback_field "")
  if(fallback)
    set(fallback_field ",\n \"fallback\":\"vendor\"")
  endif()
  set_property(TARGET ${target} APPEND PROPERTY DEEPGEN_NAMES ${arg_NAME})
  set_property(TARGET ${target} PROPERTY DEEPGEN_FALLBACK_${arg_NAME} ${fallback})
  set_property(TARGET ${target} PROPERTY DEEPGEN_KEY_${arg_NAME} "${key}")
  set_property(TARGET ${target} PROPERTY DEEPGEN_OPTIONS_${arg_NAME} ${options})
  set_property(TARGET ${target} PROPERTY DEEPGEN_UNTUNED_${arg_NAME} ${untuned})
  # Written only when different, so a reconfigure re-runs nothing.
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/_deepgen/${target}/${arg_NAME}/problem.json CONTENT
"{\"schema\":\"deepgen.problem/1\",\"target\":\"${target}\",\"name\":\"${arg_NAME}\",\"namespace\":\"${namespace}\",
 \"problem\":\"${key}\",
 ${ARGN} \"untuned\":${untuned}${fallback_field}}
" @ONLY)
endfunction()

# Whether the function calls the vendor's library where that was found faster. Reads arg_FALLBACK of the caller.
function(_deepgen_fallback target key result)
  set(word "${DEEPGEN_FALLBACK}")
  if(word)
    _deepgen_check_word(${target} DEEPGEN_FALLBACK "${word}" vendor none)
  endif()
  if(DEFINED arg_FALLBACK)
    _deepgen_check_word(${target} FALLBACK "${arg_FALLBACK}" vendor none)
    set(word "${arg_FALLBACK}")
  endif()
  set(falls_back FALSE)
  if(word STREQUAL "vendor" AND key MATCHES "=[0-9]+\\.\\.")
    if(DEFINED arg_FALLBACK) # a default is for what can have it
      _deepgen_fail(${target} FALLBACK "vendor" "does not go with a range: the vendor's library is timed at some sizes alone"
        "sizes without a range, or FALLBACK none")
    endif()
  elseif(word STREQUAL "vendor" AND key MATCHES " invariant=rows ")
    if(DEFINED arg_FALLBACK)
      _deepgen_fail(${target} FALLBACK "vendor" "does not go with BATCH_INVARIANT: the vendor's library promises no order of sums"
        "FALLBACK none, or no BATCH_INVARIANT")
    endif()
  elseif(word STREQUAL "vendor" AND key MATCHES " threads=")
    if(DEFINED arg_FALLBACK)
      _deepgen_fail(${target} FALLBACK "vendor" "does not go with THREADS: the vendor's library is timed on one thread alone"
        "FALLBACK none, or no THREADS")
    endif()
  elseif(word STREQUAL "vendor" AND key MATCHES "^gemm ")
    set(falls_back TRUE)
  endif()
  set(${result} ${falls_back} PARENT_SCOPE)
endfunction()

# C symbols and C++ namespaces share the global scope of a program: each symbol has one owner, and none is a namespace.
# Libraries may share a namespace. Reads arg_NAME of the caller.
function(_deepgen_own_symbols target symbol)
  string(TOUPPER ${symbol} macro) # of the sizes: one name in capitals has one owner, too
  foreach(each ${symbol} ${symbol}_run ${symbol}_function ${symbol}_launch ${symbol}_prepare ${symbol}_workspace_size
          ${symbol}_sizes ${macro}_M)
    get_property(owner GLOBAL PROPERTY DEEPGEN_OWNER_${each})
    if(owner)
      list(GET owner 0 owner)
      _deepgen_fail(${target} NAME "${arg_NAME}" "gives the C symbol ${each}, which ${owner} has already"
        "another NAME or NAMESPACE; a symbol must not be called like a namespace either")
    endif()
    set_property(GLOBAL PROPERTY DEEPGEN_OWNER_${each} ${target})
  endforeach()
endfunction()

function(_deepgen_own_namespace target namespace)
  get_property(owner GLOBAL PROPERTY DEEPGEN_OWNER_${namespace})
  if(owner AND NOT "namespace" IN_LIST owner)
    _deepgen_fail(${target} NAMESPACE "${namespace}" "is a C symbol that ${owner} has already" "another NAMESPACE")
  endif()
  set_property(GLOBAL PROPERTY DEEPGEN_OWNER_${namespace} ${target} namespace)
endfunction()

# Creates the library at the first call; at a later one checks that the call belongs to it. Reads arg_* of the caller.
function(_deepgen_library target)
  if(NOT TARGET ${target})
    _deepgen_create_library(${target})
    return()
  endif()
  get_target_property(names ${target} DEEPGEN_NAMES)
  if(names STREQUAL "names-NOTFOUND")
    _deepgen_fail(${target} "target name" "${target}" "is already used by another target" "a name that is free")
  endif()
  get_target_property(folder ${target} DEEPGEN_SOURCE_DIR)
  if(NOT folder STREQUAL CMAKE_CURRENT_SOURCE_DIR)
    _deepgen_fail(${target} "target name" "${target}" "belongs to ${folder}"
      "problems are added in the directory of the first call; here, another target name")
  endif()
  if(DEFINED arg_ARCHS)
    _deepgen_archs(${target} archs)
    _deepgen_check_same(${target} ARCHS "${arg_ARCHS}" "${archs}")
  endif()
  if(DEFINED arg_NAMESPACE)
    _deepgen_check_same(${target} NAMESPACE "${arg_NAMESPACE}" "${arg_NAMESPACE}")
  endif()
  if(DEFINED arg_LOCK_FILE)
    _deepgen_lock_path(lock)
    _deepgen_check_same(${target} LOCK_FILE "${arg_LOCK_FILE}" "${lock}")
  endif()
  if(arg_VENDORED)
    _deepgen_check_same(${target} VENDORED TRUE TRUE)
  endif()
endfunction()

function(_deepgen_create_library target)
  if(NOT DEFINED arg_NAMESPACE)
    set(arg_NAMESPACE ${target})
  endif()
  _deepgen_check_identifier(${target} NAMESPACE "${arg_NAMESPACE}")
  _deepgen_lock_path(lock)
  _deepgen_check_printable(${target} LOCK_FILE "${lock}")
  if(NOT DEEPGEN_MODE MATCHES "^(auto|lock|frozen)$")
    _deepgen_fail(${target} DEEPGEN_MODE "${DEEPGEN_MODE}" "is unknown" "auto, lock, frozen")
  endif()
  _deepgen_own_namespace(${target} ${arg_NAMESPACE})
  _deepgen_project_setup(${target})
  _deepgen_archs(${target} archs)

  set(folder ${CMAKE_CURRENT_BINARY_DIR}/_deepgen/${target})
  set(archives ${CMAKE_CURRENT_BINARY_DIR}) # as for any library of this directory
  if(CMAKE_ARCHIVE_OUTPUT_DIRECTORY)
    set(archives ${CMAKE_ARCHIVE_OUTPUT_DIRECTORY})
  endif()
  set(vendored FALSE)
  if(arg_VENDORED)
    set(vendored TRUE)
  endif()
  get_property(library GLOBAL PROPERTY DEEPGEN_LIBRARY_FOLDER)
  add_subdirectory(${library} ${folder}/library)
  set_target_properties(${target} PROPERTIES
    DEEPGEN_SOURCE_DIR ${CMAKE_CURRENT_SOURCE_DIR} DEEPGEN_NAMES "" DEEPGEN_NAMESPACE ${arg_NAMESPACE}
    DEEPGEN_ARCHS "${archs}" DEEPGEN_LOCK_FILE ${lock} DEEPGEN_MODE ${DEEPGEN_MODE}
    DEEPGEN_VENDORED ${vendored})
  # Further calls may follow: the edges that see all problems are declared when the directory ends.
  cmake_language(EVAL CODE "cmake_language(DEFER CALL _deepgen_finish_library [[${target}]])")
endfunction()

function(_deepgen_lock_path result)
  set(path ${CMAKE_CURRENT_SOURCE_DIR}/deepgen.lock.json)
  if(DEFINED arg_LOCK_FILE)
    cmake_path(ABSOLUTE_PATH arg_LOCK_FILE BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE OUTPUT_VARIABLE path)
  endif()
  set(${result} ${path} PARENT_SCOPE)
endfunction()

function(_deepgen_check_same target keyword value resolved)
  get_target_property(first ${target} DEEPGEN_${keyword})
  if(NOT resolved STREQUAL first)
    _deepgen_fail(${target} ${keyword} "${value}" "differs from the first call of this library"
      "${first}, or nothing: the first call decides")
  endif()
endfunction()
