#include "runtime/core/abi.h"

#include <cstring>

const char* deepgen_status_string(deepgen_status status) {
  int value = 0; // a caller in C may pass any int, and a newer runtime return what this header does not have
  static_assert(sizeof value == sizeof status);
  std::memcpy(&value, &status, sizeof value);
  switch (value) {
  case DEEPGEN_OK:
    return "success";
  case DEEPGEN_ERROR_NULL:
    return "a required pointer is null: pass a, b, d, c when beta is not 0, and every operand of the "
           "epilogue";
  case DEEPGEN_ERROR_ALIGNMENT:
    return "a pointer is not aligned to its element type: align each operand to the size of its elements; a "
           "batch invariant function on a GPU wants addresses, leading dimensions and strides that are "
           "multiples "
           "of 16 bytes, or what its dense operands are aligned to";
  case DEEPGEN_ERROR_LEADING_DIMENSION:
    return "a leading dimension is smaller than a row of the matrix as stored, or too large to address: pass "
           "0 for "
           "dense, or at least the columns that the header documents";
  case DEEPGEN_ERROR_SIZE:
    return "a size is not one that the function was built for: pass each size that has a range, within that "
           "range or 0; "
           "see the generated header, or ask deepgen_size_ranges()";
  case DEEPGEN_ERROR_STRIDE:
    return "a batch stride is negative, too large, or lets batch entries of D overlap: pass 0 for dense, at "
           "least rows "
           "times leading dimension, or DEEPGEN_BROADCAST for one matrix (not for D)";
  case DEEPGEN_ERROR_WORKSPACE:
    return "no usable workspace: on a CPU pass deepgen_workspace_size() bytes aligned to 64, or null and "
           "raise the limit "
           "on address space (ulimit -v); on a GPU pass deepgen_launch_workspace_size() bytes aligned to 256";
  case DEEPGEN_ERROR_OVERLAP:
    return "C, residual or multiplier overlaps D but is not equal to it: use the same pointer, type, leading "
           "dimension "
           "and stride for both, or separate memory";
  case DEEPGEN_ERROR_NO_KERNEL:
    return "no linked kernel runs on this device, or none takes operands of this alignment: build the "
           "library with this "
           "device's arch in ARCHS";
  case DEEPGEN_ERROR_ARGUMENT:
    return "an argument is out of range: clamp_low must be at most clamp_high, alpha and beta of an i32 "
           "function are "
           "whole numbers of 32 bits, threads are 1 to 1024; of attention, scale is 0 or of magnitude 2^-126 "
           "to 2^127, as it is rounded to f32 (for none, pass 0: it stands for 1 / sqrt(dimension)), softcap "
           "is 0 or from 2^-126 to the greatest f32";
  case DEEPGEN_ERROR_NO_DRIVER:
    return "the GPU's driver library cannot be loaded or is too old: for NVIDIA libcuda.so.1 of release 525 "
           "or later, for AMD "
           "libamdhip64.so of ROCm 5.2 or later (LD_LIBRARY_PATH must find it)";
  case DEEPGEN_ERROR_NO_CONTEXT:
    return "no GPU is current on this thread: call cudaSetDevice() or cuCtxSetCurrent() on it first; on AMD, "
           "HIP finds no "
           "device: see that /dev/kfd exists and may be opened (groups render and video), and "
           "HIP_VISIBLE_DEVICES";
  case DEEPGEN_ERROR_DRIVER:
    return "a call of the GPU's driver failed, or its library could not be loaded this time: "
           "deepgen_last_driver_error() has the code and text";
  case DEEPGEN_ERROR_WRONG_RESULT:
    return "a kernel computes wrong results on this machine: do not use the library here, and report the "
           "text of "
           "deepgen_verify() with deepgen_selected_config()";
  case DEEPGEN_ERROR_VERSION:
    return "the library, the program and the runtime are of different versions of DeepGen: build all of them "
           "with one, and "
           "in C begin deepgen_gemm_args with DEEPGEN_GEMM_ARGS";
  case DEEPGEN_ERROR_PACKED:
    return "B is not packed, or in another layout than this function takes, or the memory for it is too "
           "small: "
           "pack it by "
           "deepgen_pack_b() into deepgen_packed_b_size() bytes; deepgen_check_packed_b() says what is wrong";
  }
  return "unknown status: the header and the linked runtime are of different versions";
}

deepgen_status deepgen_size_ranges(const deepgen_function* function, deepgen_call_sizes* least,
                                   deepgen_call_sizes* most) {
  if (!function) return DEEPGEN_ERROR_NULL;
  if (!deepgen::is_current(*function)) return DEEPGEN_ERROR_VERSION;
  const deepgen_range* x = function->sizes;
  if (least) *least = {x[0].least, x[1].least, x[2].least, x[3].least};
  if (most) *most = {x[0].most, x[1].most, x[2].most, x[3].most};
  return DEEPGEN_OK;
}
