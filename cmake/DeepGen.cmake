# DeepGen: kernels tuned inside a CMake build: GEMMs by the function below, rows and attention by those of
# DeepGenRows.cmake and DeepGenAttention.cmake.
#
#   deepgen_add_gemm(<target> [NAME f] SHAPE M N K TYPES a b d [ACCUMULATE t] [LAYOUT nn|nt|tn|tt] [BATCH n] [GROUPS n]
#                    [GATED silu|gelu|gelu_tanh|sigmoid|relu] [PREPACKED b] [THREADS n]
#                    [EPILOGUE bias|relu|residual|... ...]
#                    [TUNE_AT n ...] [WEIGHTS w ...] [KERNELS n] [BATCH_INVARIANT]
#                    [SEARCH auto|grid|random|anneal|genetic|gbt|xgboost] [SEARCH_FILE f] [BUDGET quick|default|thorough]
#                    [SLOTS n ...] [REGIME sustained|burst|balanced] [UNTUNED]
#                    [ARCHS native|cpu|sm_80|sm_86|sm_89|sm_90|sm_90a|sm_100|sm_120 ...] [NAMESPACE ns] [LOCK_FILE path] [VENDORED]
#                    [FALLBACK vendor|none])
#
# The first call creates the static library <target> with the header <target>.h; later calls with another NAME add
# problems to it. NAME defaults to <target>, NAMESPACE to <target>, ACCUMULATE to what the types imply, LAYOUT to nt
# (B is stored [N,K]). Each of M, N, K and BATCH is a number, or a range such as 1..8192: then each call passes it. TYPES of A
# and B to D: f32 to f32, f64 to f64, f16 to f16 or f32, bf16 to bf16 or f32, tf32 to f32, e4m3 and e5m2 to f16, bf16 or f32,
# i8 to i32, f32, bf16 or i8, and so u8 (A) and i8 (B). The epilogue's steps apply in the order given;
# deepgen/epilogue_steps.h lists them, docs/sizes_and_types.md says what they compute.
# With GATED, B is [gate; up], 2 N wide, and the product gate(alpha A Bg) * (alpha A Bu): SwiGLU, GeGLU, GLU, ReGLU.
# With GROUPS, the rows of A and D belong to as many groups, by a table of offsets in device memory, and each has a B of its own.
# With PREPACKED b, calls take B as deepgen_pack_b() has written it once (docs/prepacked.md); for ARCHS cpu.
# With THREADS n, a function for ARCHS cpu is tuned for calls that n threads share, by wall time (docs/threads.md).
# Of a function with a range: TUNE_AT has the sizes at which it is tuned, with several ranges as 16x128; WEIGHTS how often each is
# called, to the others; KERNELS how many kernels it links at most, 16 where nothing is said (docs/run_time_sizes.md).
# With BATCH_INVARIANT the bits of a row of D depend neither on M, nor on the row's place, nor on other rows: all kernels of the
# function add up over K in one order (docs/batch_invariance.md).
# C symbols are <namespace>_<name>. SEARCH, SEARCH_FILE, BUDGET and SLOTS (candidates in each round) are about how a search
# goes: see DeepGenSearch.cmake. REGIME is how calls on a GPU follow each other that the search tunes for: sustained, on and on;
# burst, a few after a rest; balanced, the default, both alike (docs/tuning.md). It means nothing on the CPU. UNTUNED takes the template's default config, never searched and never locked: a baseline to compare with.
# FALLBACK vendor: where the hold-out of the search found the vendor's library faster, the function calls that (docs/fallback.md).
# VENDORED keeps the compiled kernels of the lock's entries beside it, in deepgen.kernels/: `tune` writes them, and a frozen build
# then links them without compiling any.
# ARCHS, NAMESPACE, LOCK_FILE and VENDORED belong to the library: the first call decides. A library holds kernels for all of its
# archs; an arch is tuned where its device is attached. `native` means the attached GPUs, or else the CPU.
#
# Targets: <target>; <target>.bundle writes it as plain sources; <target>.tune searches its problems and merges the winners into the lock file; `tune` does so
# for every library; `tune-report` writes deepgen-report.html of all records in the build tree, `tune-results` results/*.csv. Properties of <target>
# to read: DEEPGEN_LOCK_FILE, DEEPGEN_ARCHS, DEEPGEN_MODE, DEEPGEN_VENDORED.
#
# Cache variables:
#   DEEPGEN_MODE                auto: build what the lock has, search what it lacks; lock: never search in a plain
#                               build; frozen: as lock, and a missing or stale entry is an error
#   DEEPGEN_ARCHS               default of ARCHS: native
#   DEEPGEN_SEARCH, DEEPGEN_SEARCH_FILE, DEEPGEN_BUDGET, DEEPGEN_SLOTS, DEEPGEN_REGIME
#                               defaults of SEARCH, SEARCH_FILE, BUDGET, SLOTS, REGIME; empty: auto, none, default, by the budget,
#                               balanced
#   DEEPGEN_GPU_JOBS            measure edges that run at once, each on a GPU of its own: as many as there are. CPU kernels are
#                               always measured one at a time
#   DEEPGEN_COMPILE_JOBS        kernel compiles that run at once: all cores; of more than four, one less for each GPU
#   DEEPGEN_SITES               sites.json: hosts that compile and measure for this build (DeepGenSites.cmake, docs/cluster.md)
#   DEEPGEN_START_ONLY          sites compile and verify what is linked, too: this host compiles and measures no kernel
#   DEEPGEN_VERIFY              verify what is linked and no search has verified: default configs, fallbacks
#   DEEPGEN_MEASURE_SECONDS     time for one measure edge; empty: by the budget
#   DEEPGEN_CACHE_DIR           folder where builds keep compiled kernels and measurements for later builds; empty: that of
#                               the environment's DEEPGEN_CACHE_DIR, else ~/.cache/deepgen
#   DEEPGEN_REFERENCE, DEEPGEN_UPLIFT
#                               what tune-results compares with: a lock, or the vendor's library; and what it keeps
#   DEEPGEN_TUNE_TARGET         name of the global tune target: tune
#   DEEPGEN_EXECUTABLE          path of `deepgen`; empty: the one of the package or of this build
#   DEEPGEN_MEASURE_EXECUTABLE  path of `deepgen-measure`; empty: the one beside `deepgen`
#
# An operator is a public function that turns words into a problem's key, as deepgen_add_gemm() does in this file and
# DeepGenProblem.cmake, and deepgen_add_rows() in DeepGenRows.cmake and deepgen_add_attention() in
# DeepGenAttention.cmake; _deepgen_add_problem() takes the key from there, and nothing behind it knows the operator.
# Edges are declared in DeepGenGraph.cmake. Everything below may be called from any directory scope, so state lives in
# target and global properties, never in variables of the including file.
include_guard(GLOBAL)
if(CMAKE_VERSION VERSION_LESS 3.25)
  message(FATAL_ERROR "DeepGen: this is CMake ${CMAKE_VERSION}.\n  Allowed: CMake 3.25 or later.")
endif()
cmake_policy(VERSION 3.25) # projects may ask for less
include(${CMAKE_CURRENT_LIST_DIR}/DeepGenWords.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/DeepGenProblem.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/DeepGenPoints.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/DeepGenRows.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/DeepGenAttention.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/DeepGenDevices.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/DeepGenSites.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/DeepGenSearch.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/DeepGenLibrary.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/DeepGenVendored.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/DeepGenBundle.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/DeepGenGraph.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/DeepGenTune.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/DeepGenWorkload.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/DeepGenMlir.cmake)

set(DEEPGEN_MODE auto CACHE STRING "auto, lock or frozen")
set_property(CACHE DEEPGEN_MODE PROPERTY STRINGS auto lock frozen)
set(DEEPGEN_ARCHS native CACHE STRING "Default of ARCHS")
set(DEEPGEN_SEARCH "" CACHE STRING "Search strategy; empty: that of the search file, else auto")
set_property(CACHE DEEPGEN_SEARCH PROPERTY STRINGS "" auto grid random anneal genetic gbt xgboost)
set(DEEPGEN_SEARCH_FILE "" CACHE FILEPATH "Search file (deepgen.search/1) of all problems that name none")
set(DEEPGEN_BUDGET "" CACHE STRING "quick, default or thorough; empty: that of the search file, else default")
set_property(CACHE DEEPGEN_BUDGET PROPERTY STRINGS "" quick default thorough)
set(DEEPGEN_SLOTS "" CACHE STRING "Candidates in each round of a search; empty: by the budget")
set(DEEPGEN_REGIME "" CACHE STRING "How calls on a GPU follow each other that a search tunes for; empty: that of the search file, else balanced")
set_property(CACHE DEEPGEN_REGIME PROPERTY STRINGS "" sustained burst balanced)
set(DEEPGEN_FALLBACK "" CACHE STRING "Default of FALLBACK: vendor or none; empty: none")
set_property(CACHE DEEPGEN_FALLBACK PROPERTY STRINGS "" vendor none)
set(DEEPGEN_VERIFY ON CACHE BOOL "Verify what is linked and no search has verified: default configs, fallbacks")
set(DEEPGEN_SITES "" CACHE FILEPATH "sites.json of hosts that compile and measure for this build; empty: this one does")
option(DEEPGEN_START_ONLY "Sites compile and verify what is linked, too: this host compiles and measures no kernel" OFF)
set(DEEPGEN_GPU_JOBS "" CACHE STRING "Measure edges that run at once on GPUs; empty: one for each attached GPU")
set(DEEPGEN_COMPILE_JOBS "" CACHE STRING "Kernel compiles that run at once; empty: all cores but those of measure edges on GPUs")
set(DEEPGEN_MEASURE_SECONDS "" CACHE STRING "Time for one measure edge in seconds; empty: by the budget")
set(DEEPGEN_CACHE_DIR "" CACHE PATH "Folder of the cache between builds; empty: the user's")
set(DEEPGEN_REFERENCE "" CACHE FILEPATH "Lock that <tune>-results compares with; empty: the vendor's library")
set(DEEPGEN_UPLIFT "" CACHE STRING "What <tune>-results keeps is so many times as fast; empty: faster beyond the noise")
set(DEEPGEN_TUNE_TARGET tune CACHE STRING "Name of the target that tunes everything")
set(DEEPGEN_EXECUTABLE "" CACHE FILEPATH "Path of a prebuilt `deepgen`")
set(DEEPGEN_MEASURE_EXECUTABLE "" CACHE FILEPATH "Path of a prebuilt `deepgen-measure`; empty: the one beside `deepgen`")

function(deepgen_add_gemm target)
  set(options UNTUNED VENDORED BATCH_INVARIANT)
  set(singles NAME ACCUMULATE LAYOUT BATCH GROUPS GATED PREPACKED THREADS NAMESPACE LOCK_FILE SEARCH SEARCH_FILE BUDGET REGIME FALLBACK KERNELS)
  set(lists SHAPE TYPES EPILOGUE ARCHS SLOTS TUNE_AT WEIGHTS)
  set_property(GLOBAL PROPERTY DEEPGEN_FUNCTION deepgen_add_gemm)
  _deepgen_check_target_name("${target}")
  _deepgen_check_words(${target} "${options}" "${singles}" "${lists}" "${ARGN}" ${ARGC})
  cmake_parse_arguments(PARSE_ARGV 1 arg "${options}" "${singles}" "${lists}")
  foreach(keyword SHAPE TYPES)
    if(NOT DEFINED arg_${keyword})
      _deepgen_fail(${target} ${keyword} "" "is required" "SHAPE <M> <N> <K> and TYPES <A> <B> <D>")
    endif()
  endforeach()
  if(NOT DEFINED arg_NAME)
    set(arg_NAME ${target})
  endif()
  if(NOT DEFINED arg_LAYOUT)
    set(arg_LAYOUT nt)
  endif()
  if(NOT DEFINED arg_BATCH)
    set(arg_BATCH 1)
  endif()
  _deepgen_problem_key(${target} key)
  _deepgen_points(${target} points)
  _deepgen_add_problem(${target} "${key}" "${points}")
endfunction()
