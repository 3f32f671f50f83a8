# What no search has verified is verified before it is linked: default configs, fallbacks, a locked config with other code. What
# cannot be says so, and a program can verify what it runs.
function(count_marks folder wanted)
  file(READ ${WORK}/${folder}/_deepgen/kernels/kernels.cpp source)
  string(REGEX MATCHALL "\\(not verified\\)" marks "${source}")
  list(LENGTH marks count)
  if(NOT count EQUAL wanted)
    message(FATAL_ERROR "${folder}: ${count} kernels are marked, not ${wanted}")
  endif()
endfunction()
configure(basic default -DDEEPGEN_MODE=lock)
build(default)
expect("Verifying kernels: up/cpu winner and fallbacks" "Verifying kernels: down/cpu winner and fallbacks")
count_marks(default 0)
expect_null_build(default)
configure(basic trusting -DDEEPGEN_MODE=lock -DDEEPGEN_VERIFY=OFF)
build(trusting)
expect_not("Verifying")
count_marks(trusting 4) # a default of level 3 and its fallback, twice

# A host that is too old for a kernel says so, and writes the same library.
set(ENV{DEEPGEN_CPU_LEVEL} 2)
configure(basic old -DDEEPGEN_MODE=lock)
build(old)
expect("not verified: cpu_tile isa=3" "it needs x86-64-v3, which this host lacks")
expect_equal_files(default/_deepgen/kernels/kernels.cpp old/_deepgen/kernels/kernels.cpp)
unset(ENV{DEEPGEN_CPU_LEVEL})

# An entry whose config compiles to other code than it had when it was verified: here to wrong code.
configure(basic tuning -DDEEPGEN_EXECUTABLE=${FAULTY} -DDEEPGEN_SLOTS=1)
tune(tuning)
file(READ ${WORK}/basic/deepgen.lock.json lock)
string(REPLACE "\"fault\":0" "\"fault\":4" wrong "${lock}")
file(WRITE ${WORK}/basic/deepgen.lock.json "${wrong}")
foreach(mode auto lock)
  configure(basic ${mode} -DDEEPGEN_EXECUTABLE=${FAULTY} -DDEEPGEN_MODE=${mode})
  run_failing(${CMAKE_COMMAND} --build ${mode})
  expect("a kernel that would be linked is not right" "wrong: main kernel" "ninja tune")
  expect_no_file(${mode}/app)
endforeach()

# In the program itself, without any tool.
file(WRITE ${WORK}/arguments/main.c [[
#include "kernels.h"
#include <stdio.h>
int main(void) {
  char text[200];
  const deepgen_status status = deepgen_verify(kernels_up_function(), text, sizeof text);
  printf("%s; %s; %s\n", deepgen_selected_config(kernels_up_function()), text, deepgen_status_string(status));
  return status != DEEPGEN_OK;
}
]])
file(WRITE ${WORK}/arguments/CMakeLists.txt [[
cmake_minimum_required(VERSION 3.25)
project(checked C CXX)
find_package(DeepGen 0.1 REQUIRED)
deepgen_add_gemm(kernels NAME up SHAPE 24 40 32 TYPES f32 f32 f32 BATCH 2 GATED silu EPILOGUE bias gelu residual UNTUNED)
add_executable(app main.c)
target_link_libraries(app PRIVATE kernels)
]])
configure(arguments checked)
build(checked)
foreach(level 1 3 4)
  run(${CMAKE_COMMAND} -E env DEEPGEN_CPU_LEVEL=${level} checked/app)
  expect("1920 of 1920 elements checked, all right")
  expect_not("not verified")
endforeach()
