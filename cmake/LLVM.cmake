# How LLVM and MLIR are linked: everything statically, so that one `deepgen` runs on hosts without LLVM.
#
#   deepgen_link_llvm(<target>)
#
# Why not find_package(MLIR): a distribution's MLIR that is built with LLVM_LINK_LLVM_DYLIB exports targets which pull
# in libLLVM.so beside the static archives, and the program dies at start with "Option registered more than once".
# LLVMConfig.cmake also insists on the development files of libraries that nothing here uses. So: archives by path.
include_guard(GLOBAL)

set(DEEPGEN_LLVM_VERSION 22)
# Components of llvm-config; a further target is one more word here.
set(DEEPGEN_LLVM_COMPONENTS x86codegen x86asmparser nvptxcodegen amdgpucodegen asmprinter asmparser passes object)
# Archives that are linked are those that are referenced: a static archive that nothing names costs nothing, so all of
# MLIR's are offered, and a new dialect or conversion needs no change here. These must exist, or MLIR is not usable:
set(DEEPGEN_MLIR_LIBS
  MLIRIR MLIRParser MLIRPass MLIRTransforms
  MLIRFuncDialect MLIRSCFDialect MLIRArithDialect MLIRVectorDialect MLIRLLVMDialect MLIRControlFlowDialect
  MLIRIndexDialect MLIRMathDialect MLIRNVVMDialect MLIRROCDLDialect
  MLIRSCFToControlFlow MLIRControlFlowToLLVM MLIRArithToLLVM MLIRVectorToLLVMPass MLIRFuncToLLVM MLIRMathToLLVM
  MLIRIndexToLLVM MLIRNVVMToLLVM MLIRReconcileUnrealizedCasts
  MLIRTargetLLVMIRExport MLIRLLVMToLLVMIRTranslation MLIRNVVMToLLVMIRTranslation MLIRROCDLToLLVMIRTranslation
  MLIRBuiltinToLLVMIRTranslation)

find_program(DEEPGEN_LLVM_CONFIG
  NAMES llvm-config-${DEEPGEN_LLVM_VERSION} llvm-config
  HINTS ${LLVM_ROOT}/bin /usr/lib/llvm-${DEEPGEN_LLVM_VERSION}/bin
  DOC "llvm-config of LLVM ${DEEPGEN_LLVM_VERSION}")

function(_deepgen_llvm_missing what)
  message(FATAL_ERROR "DeepGen: ${what}\n"
    "Install LLVM/MLIR ${DEEPGEN_LLVM_VERSION} with its static libraries "
    "(Debian: llvm-${DEEPGEN_LLVM_VERSION}-dev libmlir-${DEEPGEN_LLVM_VERSION}-dev lld-${DEEPGEN_LLVM_VERSION}; "
    "scripts/install-deps.sh does it), or pass -DDEEPGEN_LLVM_CONFIG=<path of llvm-config>, or use a prebuilt "
    "tool with -DDEEPGEN_EXECUTABLE=<path of deepgen>.")
endfunction()

function(_deepgen_llvm_config result)
  execute_process(COMMAND ${DEEPGEN_LLVM_CONFIG} ${ARGN}
    OUTPUT_VARIABLE out ERROR_VARIABLE err RESULT_VARIABLE rc OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT rc EQUAL 0)
    string(REPLACE ";" " " line "${ARGN}")
    _deepgen_llvm_missing("${DEEPGEN_LLVM_CONFIG} ${line} failed: ${err}")
  endif()
  set(${result} "${out}" PARENT_SCOPE)
endfunction()

if(NOT DEEPGEN_LLVM_CONFIG)
  _deepgen_llvm_missing("llvm-config-${DEEPGEN_LLVM_VERSION} was not found.")
endif()
_deepgen_llvm_config(DEEPGEN_LLVM_FULL_VERSION --version)
if(NOT DEEPGEN_LLVM_FULL_VERSION MATCHES "^${DEEPGEN_LLVM_VERSION}\\.")
  _deepgen_llvm_missing("${DEEPGEN_LLVM_CONFIG} is version ${DEEPGEN_LLVM_FULL_VERSION}, not ${DEEPGEN_LLVM_VERSION}.")
endif()
_deepgen_llvm_config(_includes --includedir)
_deepgen_llvm_config(_libdir --libdir)
_deepgen_llvm_config(DEEPGEN_LLVM_BINDIR --bindir)
_deepgen_llvm_config(_llvm_libs --link-static --libfiles ${DEEPGEN_LLVM_COMPONENTS})
separate_arguments(_llvm_libs UNIX_COMMAND "${_llvm_libs}")

file(GLOB _mlir_libs ${_libdir}/libMLIR*.a)
foreach(lib IN LISTS DEEPGEN_MLIR_LIBS)
  if(NOT ${_libdir}/lib${lib}.a IN_LIST _mlir_libs)
    _deepgen_llvm_missing("${_libdir}/lib${lib}.a does not exist.")
  endif()
endforeach()
find_program(DEEPGEN_LLD NAMES ld.lld HINTS ${DEEPGEN_LLVM_BINDIR} NO_DEFAULT_PATH)
if(NOT DEEPGEN_LLD)
  _deepgen_llvm_missing("ld.lld was not found in ${DEEPGEN_LLVM_BINDIR}.")
endif()

# Prefer the archives, so that the shipped binary needs nothing but the C library.
find_library(DEEPGEN_ZLIB NAMES libz.a z REQUIRED)
find_library(DEEPGEN_ZSTD NAMES libzstd.a zstd REQUIRED)

add_library(deepgen_llvm INTERFACE)
target_include_directories(deepgen_llvm SYSTEM INTERFACE ${_includes})
target_compile_definitions(deepgen_llvm INTERFACE
  DEEPGEN_LLVM_VERSION="${DEEPGEN_LLVM_FULL_VERSION}"
  __STDC_CONSTANT_MACROS __STDC_FORMAT_MACROS __STDC_LIMIT_MACROS)
target_link_libraries(deepgen_llvm INTERFACE
  -Wl,--start-group ${_mlir_libs} ${_llvm_libs} -Wl,--end-group
  ${DEEPGEN_ZSTD} ${DEEPGEN_ZLIB} ${CMAKE_DL_LIBS} m pthread)
# -B: gcc looks for ld.lld there first, whatever PATH says.
target_link_options(deepgen_llvm INTERFACE -B${DEEPGEN_LLVM_BINDIR} -fuse-ld=lld -Wl,--gc-sections)

# PUBLIC: a static library's users need the headers and the archives as well.
function(deepgen_link_llvm target)
  target_link_libraries(${target} PUBLIC deepgen_llvm)
  # These instrument MLIR's headers, which takes as long to compile as all else, and find nothing that is ours.
  if(DEEPGEN_SANITIZE MATCHES "undefined")
    target_compile_options(${target} PRIVATE -fno-sanitize=null,alignment,object-size,vptr)
  endif()
endfunction()
