# Compiles cuda_kernels.cu to PTX: cmake [-DOUTPUT=file] [-DNVCC=path] -P measure/gpu/toolbox/cuda_kernels.cmake
# With -DEXPECT=file it compares instead, and says so when nvcc is of another version than the one that made that file.
cmake_minimum_required(VERSION 3.25)
get_filename_component(source_dir "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT DEFINED OUTPUT)
  set(OUTPUT "${CMAKE_CURRENT_LIST_DIR}/cuda_kernels.ptx")
endif()
if(NOT DEFINED NVCC)
  find_program(NVCC nvcc HINTS /usr/local/cuda/bin REQUIRED)
endif()
execute_process(
  COMMAND ${NVCC} -ptx -arch=compute_80 -std=c++17 -O3 -I. measure/gpu/toolbox/cuda_kernels.cu -o "${OUTPUT}.tmp"
  WORKING_DIRECTORY ${source_dir} COMMAND_ERROR_IS_FATAL ANY)
file(READ "${OUTPUT}.tmp" text)
file(REMOVE "${OUTPUT}.tmp")
# nvcc states the newest version of the language that it knows; what is used here is in 7.0, which older drivers take.
string(REGEX REPLACE "\n\\.version [0-9.]+" "\n.version 7.0" text "${text}")
if(NOT DEFINED EXPECT)
  file(WRITE "${OUTPUT}" "${text}")
  return()
endif()
file(READ "${EXPECT}" expected)
string(REGEX MATCH "release [0-9.]+, V[0-9.]+" made_by "${expected}")
string(REGEX MATCH "release [0-9.]+, V[0-9.]+" here "${text}")
if(NOT made_by STREQUAL here)
  message(STATUS "skipped: ${EXPECT} is by nvcc ${made_by}, here is ${here}")
elseif(NOT text STREQUAL expected)
  message(FATAL_ERROR "${EXPECT} is not what nvcc makes of cuda_kernels.cu; run cmake -P measure/gpu/toolbox/cuda_kernels.cmake")
endif()
