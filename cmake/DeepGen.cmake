# DeepGen: GEMM kernels tuned inside a CMake build.
#
#   deepgen_add_gemm(<target> [NAME f] SHAPE M N K TYPES a b d [ACCUMULATE t] [LAYOUT nn|nt|tn|tt] [BATCH n] [GROUPS n]
#                    [GATED silu|gelu|gelu_tanh|sigmoid|relu]
#                    [EPILOGUE bias|bias_row|relu|gelu|gelu_tanh|silu|sigmoid|clamp|residual|multiply|
#                              scale_a|scale_b|scale_row|scale_col|scale_d ...]
#                    [SEARCH auto|grid|random|anneal|genetic|gbt|xgboost] [SEARCH_FILE f] [BUDGET quick|default|thorough]
#                    [SLOTS n ...] [UNTUNED]
#                    [ARCHS native|cpu|sm_80|sm_86|sm_89|sm_90|sm_90a|sm_100|sm_120 ...] [NAMESPACE ns] [LOCK_FILE path])
#
# The first call creates the static library <target> with the header <target>.h; later calls with another NAME add
# problems to it. NAME defaults to <target>, NAMESPACE to <target>, ACCUMULATE to what the types imply, LAYOUT to nt
# (B is stored [N,K]). TYPES of A and B to D: f32 to f32, f64 to f64, f16 to f16 or f32, bf16 to bf16 or f32, tf32 to
# f32, e4m3 and e5m2 to f16, bf16 or f32, i8 to i32, f32, bf16 or i8. The epilogue's steps apply in the order given.
# With GATED, B is [gate; up], 2 N wide, and the product gate(alpha A Bg) * (alpha A Bu): SwiGLU, GeGLU, GLU, ReGLU.
# With GROUPS, the rows of A and D belong to as many groups, by a table of offsets in device memory, and each has a B of its own.
# C symbols are <namespace>_<name>. SEARCH, SEARCH_FILE, BUDGET and SLOTS (candidates in each round) are about how a search
# goes: see DeepGenSearch.cmake. UNTUNED takes the template's default config, never searched and never locked: a baseline to compare with.
# ARCHS, NAMESPACE and LOCK_FILE belong to the library: the first call decides. A library holds kernels for all of its
# archs; an arch is tuned where its device is attached. `native` means the attached GPUs, or else the CPU.
#
# Targets: <target>; <target>.tune searches its problems and merges the winners into the lock file; `tune` does so
# for every library; `tune-report` writes deepgen-report.html of all records in the build tree. Properties of <target>
# to read: DEEPGEN_LOCK_FILE, DEEPGEN_ARCHS, DEEPGEN_MODE.
#
# Cache variables:
#   DEEPGEN_MODE                auto: build what the lock has, search what it lacks; lock: never search in a plain
#                               build; frozen: as lock, and a missing or stale entry is an error
#   DEEPGEN_ARCHS               default of ARCHS: native
#   DEEPGEN_SEARCH, DEEPGEN_SEARCH_FILE, DEEPGEN_BUDGET, DEEPGEN_SLOTS
#                               defaults of SEARCH, SEARCH_FILE, BUDGET, SLOTS; empty: auto, none, default, by the budget
#   DEEPGEN_GPU_JOBS            measure edges that run at once, each on a GPU of its own: as many as there are. CPU kernels are
#                               always measured one at a time
#   DEEPGEN_COMPILE_JOBS        kernel compiles that run at once: all cores; of more than four, one less for each GPU
#   DEEPGEN_VERIFY              verify what is linked and no search has verified: default configs, fallbacks
#   DEEPGEN_MEASURE_SECONDS     time for one measure edge; empty: by the budget
#   DEEPGEN_CACHE_DIR           folder where builds keep compiled kernels and measurements for later builds; empty: that of
#                               the environment's DEEPGEN_CACHE_DIR, else ~/.cache/deepgen
#   DEEPGEN_TUNE_TARGET         name of the global tune target: tune
#   DEEPGEN_EXECUTABLE          path of `deepgen`; empty: the one of the package or of this build
#   DEEPGEN_MEASURE_EXECUTABLE  path of `deepgen-measure`; empty: the one beside `deepgen`
#
# Edges are declared in DeepGenGraph.cmake. Everything below may be called from any directory scope, so state lives in
# target and global properties, never in variables of the including file.
include_guard(GLOBAL)
include(${CMAKE_CURRENT_LIST_DIR}/DeepGenProblem.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/DeepGenDevices.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/DeepGenSearch.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/DeepGenGraph.cmake)

set(DEEPGEN_MODE auto CACHE STRING "auto, lock or frozen")
set_property(CACHE DEEPGEN_MODE PROPERTY STRINGS auto lock frozen)
set(DEEPGEN_ARCHS native CACHE STRING "Default of ARCHS")
set(DEEPGEN_SEARCH "" CACHE STRING "Search strategy; empty: that of the search file, else auto")
set_property(CACHE DEEPGEN_SEARCH PROPERTY STRINGS "" auto grid random anneal genetic gbt xgboost)
set(DEEPGEN_SEARCH_FILE "" CACHE FILEPATH "Search file (deepgen.search/1) of all problems that name none")
set(DEEPGEN_BUDGET "" CACHE STRING "quick, default or thorough; empty: that of the search file, else default")
set_property(CACHE DEEPGEN_BUDGET PROPERTY STRINGS "" quick default thorough)
set(DEEPGEN_SLOTS "" CACHE STRING "Candidates in each round of a search; empty: by the budget")
set(DEEPGEN_VERIFY ON CACHE BOOL "Verify what is linked and no search has verified: default configs, fallbacks")
set(DEEPGEN_GPU_JOBS "" CACHE STRING "Measure edges that run at once on GPUs; empty: one for each attached GPU")
set(DEEPGEN_COMPILE_JOBS "" CACHE STRING "Kernel compiles that run at once; empty: all cores but those of measure edges on GPUs")
set(DEEPGEN_MEASURE_SECONDS "" CACHE STRING "Time for one measure edge in seconds; empty: by the budget")
set(DEEPGEN_CACHE_DIR "" CACHE PATH "Folder of the cache between builds; empty: the user's")
set(DEEPGEN_TUNE_TARGET tune CACHE STRING "Name of the target that tunes everything")
set(DEEPGEN_EXECUTABLE "" CACHE FILEPATH "Path of a prebuilt `deepgen`")
set(DEEPGEN_MEASURE_EXECUTABLE "" CACHE FILEPATH "Path of a prebuilt `deepgen-measure`; empty: the one beside `deepgen`")

function(deepgen_add_gemm target)
  set(options UNTUNED)
  set(singles NAME ACCUMULATE LAYOUT BATCH GROUPS GATED NAMESPACE LOCK_FILE SEARCH SEARCH_FILE BUDGET)
  set(lists SHAPE TYPES EPILOGUE ARCHS SLOTS)
  _deepgen_check_words(${target} "${options};${singles};${lists}" "${options}" "${ARGN}" ${ARGC})
  cmake_parse_arguments(PARSE_ARGV 1 arg "${options}" "${singles}" "${lists}")

  foreach(default "NAME ${target}" "LAYOUT nt" "BATCH 1")
    string(REPLACE " " ";" default "${default}")
    list(GET default 0 keyword)
    if(NOT DEFINED arg_${keyword})
      list(GET default 1 arg_${keyword})
    endif()
  endforeach()
  _deepgen_check_identifier(${target} NAME "${arg_NAME}")
  _deepgen_problem_key(${target} key)
  string(REPLACE ";" " " types "${arg_TYPES}")
  _deepgen_search_options(${target})

  _deepgen_library(${target})
  _deepgen_check_archs_serve(${target} "${types}")
  get_target_property(names ${target} DEEPGEN_NAMES)
  if(arg_NAME IN_LIST names)
    list(JOIN names ", " names)
    _deepgen_fail(${target} NAME "${arg_NAME}" "is already in this library" "a name other than: ${names}")
  endif()
  get_target_property(namespace ${target} DEEPGEN_NAMESPACE)
  _deepgen_own_symbols(${target} ${namespace}_${arg_NAME})

  set(untuned false)
  if(arg_UNTUNED)
    set(untuned true)
  endif()
  set_property(TARGET ${target} APPEND PROPERTY DEEPGEN_NAMES ${arg_NAME})
  set_target_properties(${target} PROPERTIES
    DEEPGEN_KEY_${arg_NAME} "${key}"
    DEEPGEN_SLOTS_${arg_NAME} "${slots}"
    DEEPGEN_PLAN_${arg_NAME} "${plan_options}"
    DEEPGEN_COMPILE_${arg_NAME} "${compile_options}"
    DEEPGEN_MEASURE_${arg_NAME} "${measure_options}"
    DEEPGEN_PLAYOFF_${arg_NAME} "${playoff_options}"
    DEEPGEN_SEARCH_FILES_${arg_NAME} "${search_files}"
    DEEPGEN_UNTUNED_${arg_NAME} ${untuned})
  # Written only when different, so a reconfigure re-runs nothing.
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/_deepgen/${target}/${arg_NAME}/problem.json CONTENT
"{\"schema\":\"deepgen.problem/1\",\"target\":\"${target}\",\"name\":\"${arg_NAME}\",\"namespace\":\"${namespace}\",
 \"problem\":\"${key}\",
 \"untuned\":${untuned}}
" @ONLY)
endfunction()

# C symbols and C++ namespaces share the global scope of a program: each symbol has one owner, and none is a namespace.
# Libraries may share a namespace. Reads arg_NAME of the caller.
function(_deepgen_own_symbols target symbol)
  string(TOUPPER ${symbol} macro) # of the sizes: one name in capitals has one owner, too
  foreach(each ${symbol} ${symbol}_run ${symbol}_function ${symbol}_launch ${symbol}_prepare ${symbol}_workspace_size
          ${symbol}_sizes ${macro}_M)
    foreach(kind OWNER NAMESPACE_OWNER)
      get_property(owner GLOBAL PROPERTY DEEPGEN_${kind}_${each})
      if(owner)
        _deepgen_fail(${target} NAME "${arg_NAME}" "gives the C symbol ${each}, which ${owner} has already"
          "another NAME or NAMESPACE; a symbol must not be called like a namespace either")
      endif()
    endforeach()
    set_property(GLOBAL PROPERTY DEEPGEN_OWNER_${each} ${target})
  endforeach()
endfunction()

function(_deepgen_own_namespace target namespace)
  get_property(owner GLOBAL PROPERTY DEEPGEN_OWNER_${namespace})
  if(owner)
    _deepgen_fail(${target} NAMESPACE "${namespace}" "is a C symbol that ${owner} has already" "another NAMESPACE")
  endif()
  set_property(GLOBAL PROPERTY DEEPGEN_NAMESPACE_OWNER_${namespace} ${target})
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
  get_target_property(folder ${target} SOURCE_DIR)
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
endfunction()

function(_deepgen_create_library target)
  if(NOT target MATCHES "^[A-Za-z0-9_.+-]+$")
    _deepgen_fail("${target}" "target name" "${target}" "is not a target name" "letters, digits and _ . + -")
  endif()
  if(NOT DEFINED arg_NAMESPACE)
    set(arg_NAMESPACE ${target})
  endif()
  _deepgen_check_identifier(${target} NAMESPACE "${arg_NAMESPACE}")
  _deepgen_lock_path(lock)
  if(NOT DEEPGEN_MODE MATCHES "^(auto|lock|frozen)$")
    _deepgen_fail(${target} DEEPGEN_MODE "${DEEPGEN_MODE}" "is unknown" "auto, lock, frozen")
  endif()
  _deepgen_own_namespace(${target} ${arg_NAMESPACE})
  _deepgen_project_setup(${target})
  _deepgen_archs(${target} archs)

  set(folder ${CMAKE_CURRENT_BINARY_DIR}/_deepgen/${target})
  set(source ${folder}/${target}.cpp)
  add_library(${target} STATIC ${source})
  target_sources(${target} PUBLIC
    FILE_SET HEADERS BASE_DIRS ${folder}/include FILES ${folder}/include/${target}.h)
  target_link_libraries(${target} PUBLIC DeepGen::runtime)
  target_compile_features(${target} PUBLIC cxx_std_17)
  # It is the consumer's flags that the source is compiled with: no warning of theirs may break it. Link-time optimization
  # may move the kernels, which are top-level assembly, to another unit than their tables: they are global, but hidden.
  set_source_files_properties(${source} PROPERTIES
    COMPILE_OPTIONS "-w" SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON
    DEEPGEN_NAMES "" DEEPGEN_NAMESPACE ${arg_NAMESPACE} DEEPGEN_ARCHS "${archs}" DEEPGEN_LOCK_FILE ${lock}
    DEEPGEN_MODE ${DEEPGEN_MODE})
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

# --- checks: every message names the target, the keyword, the value and what is allowed

# Walks over the words as they are written: finds what cmake_parse_arguments lets pass (repeated keywords, empty
# values, an unknown keyword behind a list) and missing values.
function(_deepgen_check_words target keywords options words count)
  list(JOIN keywords ", " allowed)
  set(seen "")
  set(current "")
  set(values 1)
  math(EXPR last "${count} - 1")
  list(LENGTH words length)
  math(EXPR length "${length} + 1")
  if(NOT length EQUAL count)
    _deepgen_fail(${target} "argument" "${words}" "has an empty value or one with a semicolon" "values without either")
  endif()
  get_property(values_of_lists GLOBAL PROPERTY DEEPGEN_EPILOGUES)
  list(APPEND values_of_lists cpu native)
  foreach(word IN LISTS words)
    string(TOLOWER "${word}" lower)
    if(word IN_LIST keywords)
      if(word IN_LIST seen)
        _deepgen_fail(${target} ${word} "${word}" "appears twice" "each keyword once")
      elseif(NOT values)
        _deepgen_fail(${target} ${current} "" "has no value" "at least one value behind ${current}")
      endif()
      list(APPEND seen ${word})
      set(current ${word})
      set(values 0)
      if(word IN_LIST options)
        set(values 1)
      endif()
    elseif(word STREQUAL "" OR word MATCHES "[\"\\\\@$]")
      _deepgen_fail(${target} "${current}" "${word}" "is empty or has one of \" \\ @ $" "plain words")
    elseif((word MATCHES "^[A-Z][A-Z_]+$" AND NOT lower IN_LIST values_of_lists
            AND current MATCHES "^(SHAPE|TYPES|EPILOGUE|ARCHS|SLOTS)$")
           OR current STREQUAL "" OR current IN_LIST options)
      _deepgen_fail(${target} "unknown keyword" "${word}" "is not understood" "${allowed}")
    else()
      math(EXPR values "${values} + 1")
      if(values GREATER 1 AND current MATCHES "^(NAME|ACCUMULATE|LAYOUT|BATCH|GROUPS|GATED|NAMESPACE|LOCK_FILE|SEARCH|SEARCH_FILE|BUDGET)$")
        _deepgen_fail(${target} ${current} "${word}" "is a second value" "one value; keywords are ${allowed}")
      endif()
    endif()
  endforeach()
  if(NOT values)
    _deepgen_fail(${target} ${current} "" "has no value" "at least one value behind ${current}")
  endif()
  foreach(keyword SHAPE TYPES)
    if(NOT keyword IN_LIST seen)
      _deepgen_fail(${target} ${keyword} "" "is required" "SHAPE <M> <N> <K> and TYPES <A> <B> <D>")
    endif()
  endforeach()
endfunction()

function(_deepgen_check_identifier target keyword value)
  if(value MATCHES "^[Dd][Ee][Ee][Pp][Gg][Ee][Nn](_|$)") # functions, types and macros of the runtime
    _deepgen_fail("${target}" ${keyword} "${value}" "is a name that DeepGen's runtime keeps to itself"
      "a name that does not begin with deepgen_; the default is the target's name, so pass ${keyword} for such a target")
  endif()
  # NAME and NAMESPACE appear as C++ names of their own, too.
  set(reserved
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
    concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete
    do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
    requires restrict return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor
    xor_eq std main)
  if(NOT value MATCHES "^[A-Za-z_][A-Za-z0-9_]*$" OR value MATCHES "__|^_" OR value IN_LIST reserved)
    _deepgen_fail("${target}" ${keyword} "${value}" "is not an identifier that C and C++ leave to programs"
      "letters, digits and single underscores, a letter first, no reserved word; the default is the target's name, so pass ${keyword} where that is none")
  endif()
endfunction()

function(_deepgen_check_same target keyword value resolved)
  get_target_property(first ${target} DEEPGEN_${keyword})
  if(NOT resolved STREQUAL first)
    _deepgen_fail(${target} ${keyword} "${value}" "differs from the first call of this library"
      "${first}, or nothing: the first call decides")
  endif()
endfunction()
