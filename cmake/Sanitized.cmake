# What is optimized in a build with sanitizers. Most of it is not, as that takes a third of the time to compile: only what tests
# spend their time in. By clang that takes as long as g++ takes without; with -O1 clang inlines nothing.
set(DEEPGEN_OPTIMIZE_SANITIZED "")
if(DEEPGEN_SANITIZE)
  set(DEEPGEN_OPTIMIZE_SANITIZED $<IF:$<CXX_COMPILER_ID:Clang>,-O2,-O1>)
endif()

# deepgen_optimize_sanitized(<target> [<source of it>...])
#
# All of the target, or these sources alone: as <target>_optimized, object files of the target's. Comes behind all that says what the
# target is compiled with.
function(deepgen_optimize_sanitized target)
  if(NOT DEEPGEN_SANITIZE)
    return()
  elseif(NOT ARGN)
    target_compile_options(${target} PRIVATE ${DEEPGEN_OPTIMIZE_SANITIZED})
    return()
  endif()
  set(part ${target}_optimized)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS ARGN)
    if(NOT source IN_LIST sources)
      message(FATAL_ERROR "DeepGen: ${target} has no source ${source} to optimize: correct its CMakeLists.txt")
    endif()
  endforeach()
  list(REMOVE_ITEM sources ${ARGN})
  set_target_properties(${target} PROPERTIES SOURCES "${sources};$<TARGET_OBJECTS:${part}>")
  add_library(${part} OBJECT ${ARGN})
  foreach(property INCLUDE_DIRECTORIES COMPILE_DEFINITIONS COMPILE_OPTIONS COMPILE_FEATURES LINK_LIBRARIES POSITION_INDEPENDENT_CODE)
    get_target_property(value ${target} ${property})
    if(value)
      set_target_properties(${part} PROPERTIES ${property} "${value}")
    endif()
  endforeach()
  target_compile_options(${part} PRIVATE ${DEEPGEN_OPTIMIZE_SANITIZED})
  set_property(GLOBAL APPEND PROPERTY DEEPGEN_OPTIMIZED_PARTS ${part})
endfunction()

# deepgen_optimized_first(<program> <static library>...)
#
# Of an inline function that several sources have, the linker keeps the first: here that of the libraries, or of what of them is
# optimized, and not that of the program, which is not. Sanitized tests take two thirds of the time so.
function(deepgen_optimized_first program)
  if(DEEPGEN_SANITIZE)
    list(TRANSFORM ARGN REPLACE "(.+)" "$<TARGET_OBJECTS:\\1_optimized>")
    target_link_options(${program} PRIVATE ${ARGN})
  else()
    list(TRANSFORM ARGN REPLACE "(.+)" "$<TARGET_FILE:\\1>")
    list(JOIN ARGN " " first)
    target_link_options(${program} PRIVATE "SHELL:-Wl,--whole-archive ${first} -Wl,--no-whole-archive")
  endif()
endfunction()
