/* The public interface of a tuned library: status codes, arguments, threads. C ABI, usable from C99 and C++17.
   No call allocates, throws, aborts or prints. Calls may run concurrently from any number of threads. */
#ifndef DEEPGEN_RUNTIME_H
#define DEEPGEN_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#include <type_traits>
#define DEEPGEN_DEFAULT(value) = value
extern "C" {
#else
#define DEEPGEN_DEFAULT(value)
#endif

typedef enum deepgen_status {
  DEEPGEN_OK = 0,
  DEEPGEN_ERROR_NULL,              /* a required pointer is null */
  DEEPGEN_ERROR_ALIGNMENT,         /* a pointer is not aligned to its element type */
  DEEPGEN_ERROR_LEADING_DIMENSION, /* a leading dimension is smaller than a row of the matrix as stored */
  DEEPGEN_ERROR_SIZE,              /* a matrix view has other sizes than the function was built for */
  DEEPGEN_ERROR_STRIDE,            /* a batch stride of D makes batch entries overlap, or one is negative */
  DEEPGEN_ERROR_WORKSPACE,         /* the workspace is too small or not aligned to 64 bytes */
  DEEPGEN_ERROR_OVERLAP,           /* C overlaps D but is not equal to it. D over A, B or bias is not checked */
  DEEPGEN_ERROR_NO_KERNEL,         /* no linked kernel runs on this device */
  DEEPGEN_ERROR_ARGUMENT,          /* any other argument out of range; the function's documentation says which */
  DEEPGEN_ERROR_NO_DRIVER,         /* the GPU's driver library cannot be loaded, or is too old */
  DEEPGEN_ERROR_NO_CONTEXT,        /* no device is current on this thread, or it has none */
  DEEPGEN_ERROR_DRIVER             /* a driver call failed; deepgen_last_driver_error() says which */
} deepgen_status;

/* One sentence: what is wrong and what to do. Never null, also for unknown values. */
const char* deepgen_status_string(deepgen_status status);

/* As a batch stride of A, B, C, residual or multiplier: one matrix for the whole batch. */
#define DEEPGEN_BROADCAST (-1)

/* D = epilogue(alpha * A * B + beta * C), batch times; see the generated header for sizes, types, layout and what the
   epilogue needs. Leading dimensions and strides are in elements. 0 for a leading dimension means "dense" (the columns
   as stored); 0 for a batch stride means "dense" too (rows x leading dimension). On a GPU all pointers are device
   pointers. From C, start from DEEPGEN_GEMM_ARGS. */
typedef struct deepgen_gemm_args {
  const void* a DEEPGEN_DEFAULT(nullptr);
  const void* b DEEPGEN_DEFAULT(nullptr);
  const void* c DEEPGEN_DEFAULT(nullptr);    /* may be null when beta is 0; may be equal to d */
  void* d DEEPGEN_DEFAULT(nullptr);          /* must overlap neither a, b nor bias; this is not checked */
  const void* bias DEEPGEN_DEFAULT(nullptr); /* required when the epilogue has bias: N values */
  int64_t lda DEEPGEN_DEFAULT(0), ldb DEEPGEN_DEFAULT(0), ldc DEEPGEN_DEFAULT(0), ldd DEEPGEN_DEFAULT(0);
  int64_t stride_a DEEPGEN_DEFAULT(0), stride_b DEEPGEN_DEFAULT(0), stride_c DEEPGEN_DEFAULT(0),
      stride_d DEEPGEN_DEFAULT(0);
  double alpha DEEPGEN_DEFAULT(1.0), beta DEEPGEN_DEFAULT(0.0);
  void* workspace DEEPGEN_DEFAULT(nullptr);  /* CPU: null: scratch that the runtime reserved at start-up */
  size_t workspace_bytes DEEPGEN_DEFAULT(0);
  /* Operands of the epilogue; each is required when the epilogue has its step. */
  const void* bias_row DEEPGEN_DEFAULT(nullptr);   /* M values */
  const void* residual DEEPGEN_DEFAULT(nullptr);   /* M x N; may be equal to d, or must not overlap it */
  const void* multiplier DEEPGEN_DEFAULT(nullptr); /* M x N, likewise */
  int64_t ld_residual DEEPGEN_DEFAULT(0), stride_residual DEEPGEN_DEFAULT(0), ld_multiplier DEEPGEN_DEFAULT(0),
      stride_multiplier DEEPGEN_DEFAULT(0);
  const void* scale_a DEEPGEN_DEFAULT(nullptr);    /* one value each */
  const void* scale_b DEEPGEN_DEFAULT(nullptr);
  const void* scale_d DEEPGEN_DEFAULT(nullptr);
  const void* scale_row DEEPGEN_DEFAULT(nullptr);  /* M values */
  const void* scale_col DEEPGEN_DEFAULT(nullptr);  /* N values */
  double clamp_low DEEPGEN_DEFAULT(0.0), clamp_high DEEPGEN_DEFAULT(0.0); /* low <= high */
  /* Of a function with groups: its groups + 1 values, in device memory; group g has the rows offsets[g] to offsets[g + 1] of
     A, C and D. They must ascend, from 0 or more to M or less, which is not checked. bias and scale_col have N values for
     each group then, one behind the other, and stride_b is from one group's matrix to the next. */
  const int32_t* offsets DEEPGEN_DEFAULT(nullptr);
} deepgen_gemm_args;

#define DEEPGEN_GEMM_ARGS                                                                                              \
  {                                                                                                                    \
    NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 1.0, 0.0, NULL, 0, NULL, NULL, NULL, 0, 0, 0, 0, NULL, NULL, \
        NULL, NULL, NULL, 0.0, 0.0, NULL                                                                               \
  }

struct deepgen_function;
/* Runs a function of a generated library; what the generated wrappers call. */
deepgen_status deepgen_run_gemm(const struct deepgen_function* function, const deepgen_gemm_args* args);
/* Bytes of workspace that the selected kernel needs with the present thread count, 0 if none. */
size_t deepgen_workspace_size(const struct deepgen_function* function);
/* The selected kernel's config, e.g. "cpu_tile isa=4 mr=14 ..."; null when none runs on this device. */
const char* deepgen_selected_config(const struct deepgen_function* function);

/* GPUs. The driver is looked up at the first of these calls: nothing links CUDA or HIP. `stream` is a CUstream or
   cudaStream_t of the context that is current on the calling thread, or a hipStream_t of the current device (null: the default
   stream, on NVIDIA the legacy one). A function with kernels for both vendors takes NVIDIA's where a CUDA context is
   current. */
typedef void* deepgen_stream;
/* Enqueues the function on the stream and returns: no allocation, no synchronisation; capturable in a graph. The kernel
   is the first of: tuned on a device of this name; for this device's arch; PTX, compiled by NVIDIA's driver; among these,
   one whose alignment the operands have. The first call on a device loads its code, unless deepgen_prepare() did.
   Needs a workspace of deepgen_launch_workspace_size() bytes, aligned to 256, until the stream has passed the call. */
deepgen_status deepgen_launch_gemm(const struct deepgen_function* function, const deepgen_gemm_args* args,
                                   deepgen_stream stream);
/* Loads what the function needs on the current device. */
deepgen_status deepgen_prepare(const struct deepgen_function* function);
/* Bytes that the largest of the function's kernels for the current device needs; 0 if none or on an error. */
size_t deepgen_launch_workspace_size(const struct deepgen_function* function);
/* The config that an aligned call takes on the current device; null when none runs there. */
const char* deepgen_launch_config(const struct deepgen_function* function);
/* The driver's code (CUresult or hipError_t) and text for this thread's last DEEPGEN_ERROR_DRIVER; 0 and "" when there was
   none. */
int deepgen_last_driver_error(const char** text);

/* Threads. The default is the number of CPUs that the process may use (affinity mask), or DEEPGEN_NUM_THREADS.
   Small problems run on the calling thread alone. */
deepgen_status deepgen_set_num_threads(int threads); /* 1..1024 */
int deepgen_get_num_threads(void);

/* Runs task(context, i) for every i in [0, count), possibly concurrently, and returns when all are done. */
typedef void (*deepgen_task)(void* context, int index);
typedef void (*deepgen_parallel_for)(void* user, int count, deepgen_task task, void* context);
/* Uses the caller's threads instead of the runtime's own pool; null goes back to the pool. Set it before the first
   call or while no call runs. `threads` is how many tasks a call is split into at most. */
deepgen_status deepgen_set_parallel_for(deepgen_parallel_for function, void* user, int threads);

#ifdef __cplusplus
} /* extern "C" */

namespace deepgen {

/// A row-major matrix of the caller's; the generated typed functions check its sizes.
template <typename T> struct matrix {
  T* data;
  int64_t rows, columns;
  int64_t leading_dimension = columns;

  /// As T* to const T*: the D of one call can be the A of the next.
  template <typename U,
            typename = std::enable_if_t<std::is_same<U, const T>::value && !std::is_same<U, T>::value>>
  operator matrix<U>() const { return {data, rows, columns, leading_dimension}; }
};

} // namespace deepgen
#endif
#endif
