#include "deepgen/runtime.h"

const char* deepgen_status_string(deepgen_status status) {
  switch (status) {
  case DEEPGEN_OK:
    return "success";
  case DEEPGEN_ERROR_NULL:
    return "a required pointer is null: pass a, b, d, c when beta is not 0, and bias when the epilogue has "
           "it";
  case DEEPGEN_ERROR_ALIGNMENT:
    return "a pointer is not aligned to its element type: align a, b, c, d and bias to the size of an "
           "element";
  case DEEPGEN_ERROR_LEADING_DIMENSION:
    return "a leading dimension is smaller than a row of the matrix as stored, or too large to address: pass "
           "0 for "
           "dense, or at least the columns that the header documents";
  case DEEPGEN_ERROR_SIZE:
    return "a matrix has other sizes than the function was built for: see the sizes in the generated header";
  case DEEPGEN_ERROR_STRIDE:
    return "a batch stride is negative, too large, or lets batch entries of D overlap: pass 0 for dense, or "
           "at least "
           "rows times leading dimension";
  case DEEPGEN_ERROR_WORKSPACE:
    return "no usable workspace: pass deepgen_workspace_size() bytes aligned to 64, or raise the limit on "
           "address "
           "space (ulimit -v)";
  case DEEPGEN_ERROR_OVERLAP:
    return "C overlaps D but is not equal to it: use the same pointer, leading dimension and stride for "
           "both, or "
           "separate memory";
  case DEEPGEN_ERROR_NO_KERNEL:
    return "no linked kernel runs on this device: build the library with this arch in ARCHS";
  case DEEPGEN_ERROR_NO_DRIVER:
    return "The NVIDIA driver (libcuda.so.1) cannot be loaded or is too old: install a driver of release 580 or later.";
  case DEEPGEN_ERROR_NO_CONTEXT:
    return "No CUDA device is current on this thread: call cudaSetDevice() or cuCtxSetCurrent() first.";
  case DEEPGEN_ERROR_DRIVER:
    return "A call of the CUDA driver failed: deepgen_last_driver_error() has its code and text.";
  case DEEPGEN_ERROR_ARGUMENT:
    return "an argument is out of range: see the function's documentation";
  }
  return "unknown status: the header and the linked runtime are of different versions";
}
