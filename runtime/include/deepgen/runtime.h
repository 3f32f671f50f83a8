/* The public interface of a tuned library: status codes, arguments, threads. C ABI, usable from C99 and
   C++17. No call allocates, throws, aborts or prints. Calls may run concurrently from any number of threads.
 */
#ifndef DEEPGEN_RUNTIME_H
#define DEEPGEN_RUNTIME_H

#include "abi.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#include <type_traits>
extern "C" {
#endif

typedef enum deepgen_status {
  DEEPGEN_OK = 0,
  DEEPGEN_ERROR_NULL,              /* a required pointer is null */
  DEEPGEN_ERROR_ALIGNMENT,         /* a pointer is not aligned to its element type, or of a batch invariant
                                      function on a GPU less than its dense operands are */
  DEEPGEN_ERROR_LEADING_DIMENSION, /* a leading dimension is smaller than a row of the matrix as stored */
  DEEPGEN_ERROR_SIZE,         /* a size is not one that the function was built for: deepgen_size_ranges() */
  DEEPGEN_ERROR_STRIDE,       /* a batch stride of D makes batch entries overlap, or one is negative */
  DEEPGEN_ERROR_WORKSPACE,    /* the workspace is too small or not aligned to 64 bytes */
  DEEPGEN_ERROR_OVERLAP,      /* a matrix that is written overlaps C, a residual, a multiplier or X and is not
                                 equal to it, or another one that is written. D over A, B or vectors is not
                                 checked */
  DEEPGEN_ERROR_NO_KERNEL,    /* no linked kernel runs on this device */
  DEEPGEN_ERROR_ARGUMENT,     /* any other argument out of range; the function's documentation says which */
  DEEPGEN_ERROR_NO_DRIVER,    /* the GPU's driver library cannot be loaded, or is too old */
  DEEPGEN_ERROR_NO_CONTEXT,   /* no device is current on this thread, or it has none */
  DEEPGEN_ERROR_DRIVER,       /* a driver call failed; deepgen_last_driver_error() says which */
  DEEPGEN_ERROR_WRONG_RESULT, /* deepgen_verify() found one */
  DEEPGEN_ERROR_VERSION, /* library, program and runtime were compiled for different versions of DeepGen */
  DEEPGEN_ERROR_PACKED /* B is not packed, or in another layout than this function's, or memory for it is too
                          small: deepgen_check_packed_b() says which */
} deepgen_status;

/* One sentence: what is wrong and what to do. Never null, also for unknown values. */
const char* deepgen_status_string(deepgen_status status) DEEPGEN_API(deepgen_status_string);

/* As a batch stride of A, B, C, residual or multiplier: one matrix for the whole batch. */
#define DEEPGEN_BROADCAST (-1)

/* As a size: that of a function which was built for this one alone. */
#define DEEPGEN_AS_BUILT (-1)

/* D = epilogue(alpha * A * B + beta * C), batch times; see the generated header for sizes, types, layout and
   what the epilogue needs. Leading dimensions and strides are in elements. 0 for a leading dimension means
   "dense" (the columns as stored); 0 for a batch stride means "dense" too (rows x leading dimension). On a
   GPU all pointers are device pointers. From C, start from DEEPGEN_GEMM_ARGS: `size` and `abi` tell the
   runtime which struct it gets. */
typedef struct DEEPGEN_VERSIONED deepgen_gemm_args {
  uint32_t size DEEPGEN_DEFAULT(sizeof(deepgen_gemm_args)), abi
      DEEPGEN_DEFAULT(DEEPGEN_ABI_TAG); /* of this struct */
  const void* a DEEPGEN_DEFAULT(nullptr);
  const void* b DEEPGEN_DEFAULT(nullptr);
  const void* c DEEPGEN_DEFAULT(nullptr);    /* may be null when beta is 0; may be equal to d */
  void* d DEEPGEN_DEFAULT(nullptr);          /* must overlap neither a, b nor bias; this is not checked */
  const void* bias DEEPGEN_DEFAULT(nullptr); /* required when the epilogue has bias: N values */
  int64_t lda DEEPGEN_DEFAULT(0), ldb DEEPGEN_DEFAULT(0), ldc DEEPGEN_DEFAULT(0), ldd DEEPGEN_DEFAULT(0);
  int64_t stride_a DEEPGEN_DEFAULT(0), stride_b DEEPGEN_DEFAULT(0), stride_c DEEPGEN_DEFAULT(0),
      stride_d DEEPGEN_DEFAULT(0);
  double alpha DEEPGEN_DEFAULT(1.0), beta DEEPGEN_DEFAULT(0.0);
  void* workspace DEEPGEN_DEFAULT(nullptr); /* CPU: null: scratch that the runtime reserved at start-up */
  size_t workspace_bytes DEEPGEN_DEFAULT(0);
  /* Operands of the epilogue; each is required when the epilogue has its step. */
  const void* bias_row DEEPGEN_DEFAULT(nullptr);   /* M values */
  const void* residual DEEPGEN_DEFAULT(nullptr);   /* M x N; may be equal to d, or must not overlap it */
  const void* multiplier DEEPGEN_DEFAULT(nullptr); /* M x N, likewise */
  int64_t ld_residual DEEPGEN_DEFAULT(0), stride_residual DEEPGEN_DEFAULT(0),
      ld_multiplier DEEPGEN_DEFAULT(0), stride_multiplier DEEPGEN_DEFAULT(0);
  const void* scale_a DEEPGEN_DEFAULT(nullptr); /* one value each */
  const void* scale_b DEEPGEN_DEFAULT(nullptr);
  const void* scale_d DEEPGEN_DEFAULT(nullptr);
  const void* scale_row DEEPGEN_DEFAULT(nullptr);                         /* M values */
  const void* scale_col DEEPGEN_DEFAULT(nullptr);                         /* N values */
  double clamp_low DEEPGEN_DEFAULT(0.0), clamp_high DEEPGEN_DEFAULT(0.0); /* low <= high */
  /* Of a function with groups: its groups + 1 values, in device memory; group g has the rows offsets[g] to
     offsets[g + 1] of A, C and D. They must ascend, from 0 or more to M or less, which is not checked. bias,
     scale_col and slope have N values for each group then, one behind the other, and stride_b is from one
     group's matrix to the next. */
  const int32_t* offsets DEEPGEN_DEFAULT(nullptr);
  const void* slope DEEPGEN_DEFAULT(nullptr); /* N values, of the step prelu */
  /* Sizes of this call, where the function has a range of them; 0 is in every range. Without elements of D
     nothing is written; with K 0, D = epilogue(beta * C). Operands without elements may be null. */
  int64_t m DEEPGEN_DEFAULT(DEEPGEN_AS_BUILT), n DEEPGEN_DEFAULT(DEEPGEN_AS_BUILT),
      k DEEPGEN_DEFAULT(DEEPGEN_AS_BUILT), batch DEEPGEN_DEFAULT(DEEPGEN_AS_BUILT);
} deepgen_gemm_args;

/* X(field) for each field above that is an operand, its leading dimension or its batch stride. */
#define DEEPGEN_GEMM_OPERAND_FIELDS(X)                                                                       \
  X(a), X(b), X(c), X(d), X(bias), X(lda), X(ldb), X(ldc), X(ldd), X(stride_a), X(stride_b), X(stride_c),    \
      X(stride_d), X(alpha), X(beta), X(bias_row), X(residual), X(multiplier), X(ld_residual),               \
      X(stride_residual), X(ld_multiplier), X(stride_multiplier), X(scale_a), X(scale_b), X(scale_d),        \
      X(scale_row), X(scale_col), X(clamp_low), X(clamp_high), X(offsets), X(slope)

#define DEEPGEN_GEMM_ARGS                                                                                    \
  {sizeof(deepgen_gemm_args),                                                                                \
   DEEPGEN_ABI_TAG,                                                                                          \
   NULL,                                                                                                     \
   NULL,                                                                                                     \
   NULL,                                                                                                     \
   NULL,                                                                                                     \
   NULL,                                                                                                     \
   0,                                                                                                        \
   0,                                                                                                        \
   0,                                                                                                        \
   0,                                                                                                        \
   0,                                                                                                        \
   0,                                                                                                        \
   0,                                                                                                        \
   0,                                                                                                        \
   1.0,                                                                                                      \
   0.0,                                                                                                      \
   NULL,                                                                                                     \
   0,                                                                                                        \
   NULL,                                                                                                     \
   NULL,                                                                                                     \
   NULL,                                                                                                     \
   0,                                                                                                        \
   0,                                                                                                        \
   0,                                                                                                        \
   0,                                                                                                        \
   NULL,                                                                                                     \
   NULL,                                                                                                     \
   NULL,                                                                                                     \
   NULL,                                                                                                     \
   NULL,                                                                                                     \
   0.0,                                                                                                      \
   0.0,                                                                                                      \
   NULL,                                                                                                     \
   NULL,                                                                                                     \
   DEEPGEN_AS_BUILT,                                                                                         \
   DEEPGEN_AS_BUILT,                                                                                         \
   DEEPGEN_AS_BUILT,                                                                                         \
   DEEPGEN_AS_BUILT}

/* Of a function that deepgen_add_rows() made: D = kind(X + residual) * scale + bias, row by row; see the
   generated header for sizes and types, and which operands the function has. Leading dimensions are in
   elements; 0 means N. D may be X or the residual, if of one type, and the residual output may be that of
   them which D is not; otherwise none of these may overlap, which is checked. */
typedef struct DEEPGEN_VERSIONED deepgen_rows_args {
  uint32_t size DEEPGEN_DEFAULT(sizeof(deepgen_rows_args)), abi
      DEEPGEN_DEFAULT(DEEPGEN_ABI_TAG); /* of this struct */
  const void* x DEEPGEN_DEFAULT(nullptr);
  const void* residual DEEPGEN_DEFAULT(nullptr); /* required where the function has it, as all below */
  const void* scale DEEPGEN_DEFAULT(nullptr);    /* N values */
  const void* bias DEEPGEN_DEFAULT(nullptr);     /* N values */
  void* d DEEPGEN_DEFAULT(nullptr);
  void* residual_out DEEPGEN_DEFAULT(nullptr); /* X + residual */
  void* row_scales DEEPGEN_DEFAULT(nullptr);   /* M values of float that a call writes, where D has 8 bits */
  int64_t ldx DEEPGEN_DEFAULT(0), ld_residual DEEPGEN_DEFAULT(0), ldd DEEPGEN_DEFAULT(0),
      ld_residual_out DEEPGEN_DEFAULT(0);
  double epsilon DEEPGEN_DEFAULT(1e-5);     /* finite, 0 or more; of layer_norm and rms_norm */
  void* workspace DEEPGEN_DEFAULT(nullptr); /* as of deepgen_gemm_args */
  size_t workspace_bytes DEEPGEN_DEFAULT(0);
} deepgen_rows_args;

#define DEEPGEN_ROWS_ARGS                                                                                    \
  {sizeof(deepgen_rows_args),                                                                                \
   DEEPGEN_ABI_TAG,                                                                                          \
   NULL,                                                                                                     \
   NULL,                                                                                                     \
   NULL,                                                                                                     \
   NULL,                                                                                                     \
   NULL,                                                                                                     \
   NULL,                                                                                                     \
   NULL,                                                                                                     \
   0,                                                                                                        \
   0,                                                                                                        \
   0,                                                                                                        \
   0,                                                                                                        \
   1e-5,                                                                                                     \
   NULL,                                                                                                     \
   0}

struct deepgen_function;
/* Run a function of a generated library; what the generated wrappers call. A function of the other kind is
   DEEPGEN_ERROR_ARGUMENT. */
deepgen_status deepgen_run_gemm(const struct deepgen_function* function, const deepgen_gemm_args* args)
    DEEPGEN_API(deepgen_run_gemm);
deepgen_status deepgen_run_rows(const struct deepgen_function* function, const deepgen_rows_args* args)
    DEEPGEN_API(deepgen_run_rows);
/* Bytes of workspace that the selected kernels need with the present thread count, 0 if none: for calls of
   any sizes. */
size_t deepgen_workspace_size(const struct deepgen_function* function) DEEPGEN_API(deepgen_workspace_size);
/* The selected kernel's config, e.g. "cpu_tile isa=4 mr=14 ..."; null when none runs on this device. Of a
   function with ranges: that of the largest sizes. */
const char* deepgen_selected_config(const struct deepgen_function* function)
    DEEPGEN_API(deepgen_selected_config);

/* Sizes of a call, as in deepgen_gemm_args; from C, start from DEEPGEN_ALL_AS_BUILT. Of an attention, m are
   the most queries and n the most keys of an entry. */
typedef struct DEEPGEN_VERSIONED deepgen_call_sizes {
  int64_t m DEEPGEN_DEFAULT(DEEPGEN_AS_BUILT), n DEEPGEN_DEFAULT(DEEPGEN_AS_BUILT),
      k DEEPGEN_DEFAULT(DEEPGEN_AS_BUILT), batch DEEPGEN_DEFAULT(DEEPGEN_AS_BUILT);
} deepgen_call_sizes;
#define DEEPGEN_ALL_AS_BUILT {DEEPGEN_AS_BUILT, DEEPGEN_AS_BUILT, DEEPGEN_AS_BUILT, DEEPGEN_AS_BUILT}
/* What calls may pass; equal where a size is fixed. Either pointer may be null. */
deepgen_status deepgen_size_ranges(const struct deepgen_function* function, deepgen_call_sizes* least,
                                   deepgen_call_sizes* most) DEEPGEN_API(deepgen_size_ranges);
/* The same two for calls of these sizes: 0 and null where the function does not take them. */
size_t deepgen_workspace_size_at(const struct deepgen_function* function, const deepgen_call_sizes* sizes)
    DEEPGEN_API(deepgen_workspace_size_at);
const char* deepgen_selected_config_at(const struct deepgen_function* function,
                                       const deepgen_call_sizes* sizes)
    DEEPGEN_API(deepgen_selected_config_at);
/* Of a library with FALLBACK vendor, where the vendor's was found faster than the selected kernel: a sentence
   that says whether calls run it, or why the kernel runs. Null: the kernel is the faster one, or there is no
   FALLBACK. deepgen_selected_config() names what runs. */
const char* deepgen_selected_fallback(const struct deepgen_function* function)
    DEEPGEN_API(deepgen_selected_fallback);
/* Calls the function on operands of its own, with the kernel and the threads that calls have on this machine,
   and compares with a plain loop in f64: all elements, or of a large problem the most that a second has room
   for. `text`, unless null, gets a sentence of at most size - 1 bytes that says what was found, or "". For
   the CPU; DEEPGEN_ERROR_NO_KERNEL where it has no kernel. The one call here that allocates: without memory
   for the operands it is DEEPGEN_ERROR_WORKSPACE. Of a function with ranges it calls the ends of what each
   kernel takes. */
deepgen_status deepgen_verify(const struct deepgen_function* function, char* text, size_t size)
    DEEPGEN_API(deepgen_verify);

/* GPUs. The driver is looked up at the first of these calls: nothing links CUDA or HIP. `stream` is a
   CUstream or cudaStream_t of the context that is current on the calling thread, or a hipStream_t of the
   current device (null: the default stream, on NVIDIA the legacy one). A function with kernels for both
   vendors takes NVIDIA's where a CUDA context is current. */
typedef void* deepgen_stream;
/* Enqueues the function on the stream and returns: no allocation, no synchronisation; capturable in a graph.
   The kernel is the first of: tuned on a device of this name; for this device's arch; PTX, compiled by
   NVIDIA's driver; among these, one whose alignment the operands have. The first call on a device loads its
   code, unless deepgen_prepare() did. Needs a workspace of deepgen_launch_workspace_size() bytes, aligned to
   256, until the stream has passed the call. */
deepgen_status deepgen_launch_gemm(const struct deepgen_function* function, const deepgen_gemm_args* args,
                                   deepgen_stream stream) DEEPGEN_API(deepgen_launch_gemm);
deepgen_status deepgen_launch_rows(const struct deepgen_function* function, const deepgen_rows_args* args,
                                   deepgen_stream stream) DEEPGEN_API(deepgen_launch_rows);
/* Loads what the function needs on the current device. */
deepgen_status deepgen_prepare(const struct deepgen_function* function) DEEPGEN_API(deepgen_prepare);
/* Bytes that the largest of the function's kernels for the current device needs; 0 if none or on an error. */
size_t deepgen_launch_workspace_size(const struct deepgen_function* function)
    DEEPGEN_API(deepgen_launch_workspace_size);
/* The config that an aligned call takes on the current device; null when none runs there. Of a function with
   ranges: a call of the largest sizes. */
const char* deepgen_launch_config(const struct deepgen_function* function) DEEPGEN_API(deepgen_launch_config);
/* The same two for calls of these sizes: 0 and null where the function does not take them. */
size_t deepgen_launch_workspace_size_at(const struct deepgen_function* function,
                                        const deepgen_call_sizes* sizes)
    DEEPGEN_API(deepgen_launch_workspace_size_at);
const char* deepgen_launch_config_at(const struct deepgen_function* function, const deepgen_call_sizes* sizes)
    DEEPGEN_API(deepgen_launch_config_at);
/* As deepgen_selected_fallback(), of the current device. */
const char* deepgen_launch_fallback(const struct deepgen_function* function)
    DEEPGEN_API(deepgen_launch_fallback);
/* The driver's code (CUresult or hipError_t) and text for this thread's last DEEPGEN_ERROR_DRIVER; 0 and ""
   when there was none. */
int deepgen_last_driver_error(const char** text) DEEPGEN_API(deepgen_last_driver_error);

/* Threads. The default is the number of CPUs that the process may use (affinity mask), or
   DEEPGEN_NUM_THREADS. Small problems run on the calling thread alone. */
deepgen_status deepgen_set_num_threads(int threads) DEEPGEN_API(deepgen_set_num_threads); /* 1..1024 */
int deepgen_get_num_threads(void) DEEPGEN_API(deepgen_get_num_threads);

/* Runs task(context, i) for every i in [0, count), possibly concurrently, and returns when all are done. */
typedef void (*deepgen_task)(void* context, int index);
typedef void (*deepgen_parallel_for)(void* user, int count, deepgen_task task, void* context);
/* Uses the caller's threads instead of the runtime's own pool; null goes back to the pool. Set it before the
   first call or while no call runs. `threads` is how many tasks a call is split into at most. */
deepgen_status deepgen_set_parallel_for(deepgen_parallel_for function, void* user, int threads)
    DEEPGEN_API(deepgen_set_parallel_for);

#ifdef __cplusplus
} /* extern "C" */
#endif
#include "attention.h"
#include "packing.h"
#ifdef __cplusplus

namespace deepgen {

/// A row-major matrix of the caller's; the generated typed functions check its sizes.
template <typename T>
struct matrix {
  T* data;
  int64_t rows, columns;
  int64_t leading_dimension = columns;

  /// As T* to const T*: the D of one call can be the A of the next.
  template <typename U,
            typename = std::enable_if_t<std::is_same<U, const T>::value && !std::is_same<U, T>::value>>
  operator matrix<U>() const {
    return {data, rows, columns, leading_dimension};
  }
};

} // namespace deepgen
#endif
#endif
