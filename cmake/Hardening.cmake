# What makes a fault in our own code hard to use: checked copies and stacks, landing pads for indirect calls, addresses that
# are not known before, tables that are read-only once a program runs. The test `unit.hardening` looks for all of it.
option(DEEPGEN_HARDEN "Compile and link DeepGen hardened" ON)
include(CheckCXXSourceCompiles)
include(CheckPIESupported)
check_pie_supported()

# For the directories that are added next, until deepgen_end_hardening(): tests are not shipped.
macro(deepgen_begin_hardening)
  if(DEEPGEN_HARDEN AND NOT DEEPGEN_SANITIZE) # sanitizers check more, and are not shipped
    set(CMAKE_POSITION_INDEPENDENT_CODE ON)
    add_compile_options(-fstack-protector-strong -fstack-clash-protection)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
      add_compile_options(-fcf-protection=full)
    endif()
    # Level 3 needs GCC 12 or Clang 9 and glibc 2.34, and any level an optimizing compiler.
    set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
    check_cxx_source_compiles("#include <cstring>\nint main() { char a[2]; std::memset(a, 0, sizeof a); return a[0]; }"
      DEEPGEN_HAS_FORTIFY_3)
    unset(CMAKE_REQUIRED_FLAGS)
    set(fortify 2)
    if(DEEPGEN_HAS_FORTIFY_3)
      set(fortify 3)
    endif()
    add_compile_options("$<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=${fortify}>")
  endif()
endmacro()
get_property(deepgen_plain_options DIRECTORY PROPERTY COMPILE_OPTIONS)
macro(deepgen_end_hardening)
  set_property(DIRECTORY PROPERTY COMPILE_OPTIONS "${deepgen_plain_options}")
  unset(CMAKE_POSITION_INDEPENDENT_CODE) # the directories that follow are as the user wants them
endmacro()

# A program of ours; users' programs are theirs to link.
function(deepgen_harden_program target)
  if(DEEPGEN_HARDEN AND NOT DEEPGEN_SANITIZE)
    target_link_options(${target} PRIVATE -Wl,-z,relro,-z,now,-z,noexecstack)
  endif()
endfunction()
