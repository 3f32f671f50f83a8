# Libraries whose kernels are kept beside the lock (VENDORED). Only the tool knows how: generator/lock/vendored.h.
include_guard(GLOBAL)
cmake_policy(VERSION 3.25)

# Sets in the caller: `from_folder`, whether this build takes locked kernels from beside the lock instead of compiling them;
# `compiles`, whether it compiles any. Only a frozen build takes them: the others show what this toolchain makes of the lock.
function(_deepgen_vendored_mode)
  get_target_property(vendored ${target} DEEPGEN_VENDORED)
  set(from_folder FALSE)
  set(compiles TRUE)
  if(vendored AND mode STREQUAL "frozen")
    set(from_folder TRUE)
    set(compiles FALSE)
    foreach(name IN LISTS names)
      get_property(untuned TARGET ${target} PROPERTY DEEPGEN_UNTUNED_${name}) # no lock has its kernels
      if(untuned)
        set(compiles TRUE)
      endif()
    endforeach()
  endif()
  foreach(variable vendored from_folder compiles)
    set(${variable} ${${variable}} PARENT_SCOPE)
  endforeach()
endfunction()

# The kernels that lie beside the lock, so that embedding runs again when one has changed. What is missing there, the tool
# says: a missing input of Ninja's would be an error without a word.
function(_deepgen_vendored_files lock result)
  set(files "")
  if(EXISTS ${lock})
    file(REAL_PATH ${lock} real)
    cmake_path(GET real PARENT_PATH folder)
    cmake_path(GET real FILENAME name)
    if(name MATCHES "^(.*)\\.lock\\.json$")
      set(name ${CMAKE_MATCH_1}.kernels)
    else()
      set(name ${name}-kernels)
    endif()
    string(REGEX REPLACE "([[*?])" "[\\1]" pattern "${folder}/${name}")
    file(GLOB files CONFIGURE_DEPENDS "${pattern}/*.zst")
  endif()
  set(${result} "${files}" PARENT_SCOPE)
endfunction()
