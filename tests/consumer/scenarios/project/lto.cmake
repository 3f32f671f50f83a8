# Link-time optimization of both compilers, and clang's control flow integrity, which needs it: with the installed runtime and
# with one that the flags of the build have compiled.
function(attack build cxx flags)
  set(linker "")
  if(cxx MATCHES clang)
    # Clang knows its lld where it is not in PATH. The runtime's project has a C compiler, too, which gets the same flags.
    string(REPLACE clang++ clang cc ${cxx})
    set(linker -DCMAKE_C_COMPILER=${cc} -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld -DCMAKE_SHARED_LINKER_FLAGS=-fuse-ld=lld)
  endif()
  configure(process ${build} "-DCMAKE_CXX_FLAGS=${flags}" -DCMAKE_CXX_COMPILER=${cxx} ${linker} ${ARGN})
  build(${build} -v)
  expect("-flto")
  expect_not("-fno-lto")
  run(${build}/app 20) # consumer.process repeats the same code more often
  expect("all held")
endfunction()

attack(gcc ${CXX} "-O2 -flto")
attack(gcc_parts ${CXX} "-O2 -flto -flto-partition=max")
attack(ipo ${CXX} "-O2" -DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON)

find_program(clang NAMES clang++-22 clang++)
find_program(lld NAMES ld.lld PATHS /usr/lib/llvm-22/bin)
if(NOT clang OR NOT lld)
  message(STATUS "no clang++ with lld: the rest is left out")
  return()
endif()
set(runtime_too -DDEEPGEN_SOURCE=${DEEPGEN_SOURCE} -DDEEPGEN_EXECUTABLE=${PREFIX}/bin/deepgen)
attack(thin ${clang} "-O2 -flto=thin")
attack(cfi ${clang} "-O2 -flto -fvisibility=hidden -fsanitize=cfi")
attack(cfi_runtime ${clang} "-O2 -flto -fvisibility=hidden -fsanitize=cfi" ${runtime_too})
