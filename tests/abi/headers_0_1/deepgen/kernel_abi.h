/* What a compiled kernel expects and how a generated library describes it to the runtime. C ABI. Users of a tuned
   library do not need this header; generated sources, the runtime and deepgen-measure do. */
#ifndef DEEPGEN_KERNEL_ABI_H
#define DEEPGEN_KERNEL_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Argument slots. A kernel names the slots it wants, in its own order, by the names in quotes. Pointers are stored as
   integers. Leading dimensions and batch strides are int64 in elements (a stride of 0: one matrix for the whole batch).
   alpha, beta and the bounds of clamp are the bits of a value of the epilogue's type (f64; i32 for an i32 D; else f32),
   in the low bytes. The ranges count tiles of the grid. */
typedef enum deepgen_arg {
  DEEPGEN_ARG_A,        /* "a" */
  DEEPGEN_ARG_B,        /* "b" */
  DEEPGEN_ARG_C,        /* "c": not read when beta is 0; may be equal to d */
  DEEPGEN_ARG_D,        /* "d" */
  DEEPGEN_ARG_BIAS,     /* "bias": N values, the same for every batch entry */
  DEEPGEN_ARG_LDA,      /* "lda" */
  DEEPGEN_ARG_LDB,      /* "ldb" */
  DEEPGEN_ARG_LDC,      /* "ldc" */
  DEEPGEN_ARG_LDD,      /* "ldd" */
  DEEPGEN_ARG_STRIDE_A, /* "stride_a": from one batch entry to the next */
  DEEPGEN_ARG_STRIDE_B, /* "stride_b" */
  DEEPGEN_ARG_STRIDE_C, /* "stride_c" */
  DEEPGEN_ARG_STRIDE_D, /* "stride_d" */
  DEEPGEN_ARG_ALPHA,    /* "alpha" */
  DEEPGEN_ARG_BETA,     /* "beta" */
  DEEPGEN_ARG_WORKSPACE,/* "workspace": scratch, not shared with a concurrent call */
  DEEPGEN_ARG_M0,       /* "m0", "m1": tiles [m0, m1) along M (CPU) */
  DEEPGEN_ARG_M1,
  DEEPGEN_ARG_N0,       /* "n0", "n1": tiles [n0, n1) along N (CPU) */
  DEEPGEN_ARG_N1,
  DEEPGEN_ARG_B0,       /* "b0", "b1": batch entries [b0, b1) (CPU) */
  DEEPGEN_ARG_B1,
  DEEPGEN_ARG_BIAS_ROW, /* "bias_row": M values */
  DEEPGEN_ARG_RESIDUAL, /* "residual": M x N, may be equal to d */
  DEEPGEN_ARG_LD_RESIDUAL,       /* "ld_residual" */
  DEEPGEN_ARG_STRIDE_RESIDUAL,   /* "stride_residual" */
  DEEPGEN_ARG_MULTIPLIER,        /* "multiplier": M x N, may be equal to d */
  DEEPGEN_ARG_LD_MULTIPLIER,     /* "ld_multiplier" */
  DEEPGEN_ARG_STRIDE_MULTIPLIER, /* "stride_multiplier" */
  DEEPGEN_ARG_SCALE_A,  /* "scale_a", "scale_b", "scale_d": one value each */
  DEEPGEN_ARG_SCALE_B,
  DEEPGEN_ARG_SCALE_D,
  DEEPGEN_ARG_SCALE_ROW, /* "scale_row": M values */
  DEEPGEN_ARG_SCALE_COL, /* "scale_col": N values */
  DEEPGEN_ARG_CLAMP_LOW, /* "clamp_low", "clamp_high" */
  DEEPGEN_ARG_CLAMP_HIGH,
  DEEPGEN_ARG_OFFSETS,   /* "offsets": groups + 1 values of int32, the first row of each group and the end */
  DEEPGEN_ARG_MAP_A,     /* "map_a", ...: a tensor map of 128 bytes, or an array of them, by value (GPU) */
  DEEPGEN_ARG_MAP_B,
  DEEPGEN_ARG_MAP_C,
  DEEPGEN_ARG_MAP_D,
  DEEPGEN_ARG_MAP_RESIDUAL,
  DEEPGEN_ARG_MAP_MULTIPLIER,
  DEEPGEN_ARG_COUNT
} deepgen_arg;

/* The names of the slots, in order, as kernels and kernel files spell them. */
#define DEEPGEN_ARG_NAMES                                                                                             \
  "a", "b", "c", "d", "bias", "lda", "ldb", "ldc", "ldd", "stride_a", "stride_b", "stride_c", "stride_d", "alpha",     \
      "beta", "workspace", "m0", "m1", "n0", "n1", "b0", "b1", "bias_row", "residual", "ld_residual",                  \
      "stride_residual", "multiplier", "ld_multiplier", "stride_multiplier", "scale_a", "scale_b", "scale_d",          \
      "scale_row", "scale_col", "clamp_low", "clamp_high", "offsets", "map_a", "map_b", "map_c", "map_d", "map_residual",         \
      "map_multiplier"

typedef void (*deepgen_cpu_entry)(const uint64_t* args);

/* One launch of a GPU kernel (base/kernel.h, Launch). */
typedef struct deepgen_launch {
  const char* entry; /* symbol in the code object */
  uint32_t grid[3], block[3], cluster[3];
  uint32_t shared; /* dynamic shared memory, bytes */
  uint32_t flags;  /* DEEPGEN_LAUNCH_... */
} deepgen_launch;
#define DEEPGEN_LAUNCH_PERSISTENT 1u /* grid[0] is lowered to the blocks that fit on the device at once */
#define DEEPGEN_LAUNCH_DEPENDENT 2u  /* programmatic dependent launch; the code waits itself */

/* A tensor map that the runtime encodes at each call (base/kernel.h, TensorMap). */
typedef struct deepgen_tensor_map {
  uint8_t operand; /* DEEPGEN_ARG_A, _B, _C, _D, _RESIDUAL or _MULTIPLIER */
  uint32_t box_columns, box_rows;
  uint16_t swizzle, promotion; /* bytes */
  /* The operand itself when packed_ld is 0. Otherwise its copy in the workspace, which an earlier launch of the call
     makes: at this offset in bytes, its leading dimension in elements; batch entries are rows * ld elements apart. */
  uint64_t packed_offset;
  int64_t packed_rows, packed_columns, packed_ld;
} deepgen_tensor_map;

/* Code for one GPU arch. The runtime keeps what it loaded in `state`. */
typedef struct deepgen_gpu_code {
  const char* target;     /* "sm_90": the code runs on major version 9 and minor >= 0, its PTX on all later devices too;
                             "sm_90a": on 9.0 alone. "gfx942": on that alone, whatever its settings; "gfx942:xnack-":
                             with that setting */
  const void* code;       /* a cubin, null when there is only PTX; an AMD code object */
  size_t code_bytes;
  const char* ptx;        /* zero-terminated; null when there is none */
  void* volatile* state;  /* points to one pointer, initially null */
} deepgen_gpu_code;

typedef struct deepgen_kernel {
  const char* arch;        /* "cpu", "sm_90a", ... */
  const char* config;      /* "cpu_tile isa=4 mr=14 ..." */
  const uint8_t* args;     /* deepgen_arg values in slot order */
  uint32_t arg_count;
  size_t workspace;        /* bytes of scratch: CPU: for one range of tiles; GPU: for a call */
  /* arch "cpu" */
  uint32_t isa;            /* the x86-64 level it needs, 1..4 */
  deepgen_cpu_entry entry;
  int64_t tiles_m, tiles_n, tiles_b; /* the grid that threads may split */
  int64_t grain_m, grain_n;          /* splits fall on multiples of these, in tiles */
  /* GPUs */
  const char* device;                /* tuned on the device of this name; null: for any */
  uint32_t align_a, align_b, align_d; /* bytes: base, leading dimension and stride of the operands (d: also C, residual,
                                         multiplier); a call that does not meet them takes the next kernel */
  const deepgen_gpu_code* gpu;       /* null for arch "cpu" */
  const deepgen_launch* launches;
  uint32_t launch_count;
  const deepgen_tensor_map* maps;
  uint32_t map_count;
  uint64_t most_pitch; /* bytes from one row of A, and of B, to the next; a call with more takes the next kernel, too;
                          0: any */
} deepgen_kernel;

/* Element types, numbered as Type in base/problem.h. */
typedef enum deepgen_type {
  DEEPGEN_F32, DEEPGEN_F64, DEEPGEN_F16, DEEPGEN_BF16, DEEPGEN_TF32, DEEPGEN_E4M3, DEEPGEN_E5M2, DEEPGEN_I8, DEEPGEN_I32
} deepgen_type;

/* Steps of an epilogue, numbered as EpilogueOp in base/problem.h; bit 1 << step of deepgen_function::epilogue. */
typedef enum deepgen_epilogue {
  DEEPGEN_EPILOGUE_BIAS, DEEPGEN_EPILOGUE_BIAS_ROW, DEEPGEN_EPILOGUE_RELU, DEEPGEN_EPILOGUE_GELU,
  DEEPGEN_EPILOGUE_GELU_TANH, DEEPGEN_EPILOGUE_SILU, DEEPGEN_EPILOGUE_SIGMOID, DEEPGEN_EPILOGUE_CLAMP,
  DEEPGEN_EPILOGUE_RESIDUAL, DEEPGEN_EPILOGUE_MULTIPLY, DEEPGEN_EPILOGUE_SCALE_A, DEEPGEN_EPILOGUE_SCALE_B,
  DEEPGEN_EPILOGUE_SCALE_ROW, DEEPGEN_EPILOGUE_SCALE_COL, DEEPGEN_EPILOGUE_SCALE_D
} deepgen_epilogue;

/* One GEMM of a generated library. `selected` is filled at start-up (or at the first call, if that is earlier). */
typedef struct deepgen_function {
  const char* name;    /* "kernels_ffn_up" */
  const char* problem; /* the problem key */
  int64_t m, n, k, batch;
  int64_t groups;      /* of rows, each with its own matrix of B, bias and scale_col; 0: none */
  int64_t a_rows, a_columns, b_rows, b_columns; /* as stored; columns are the smallest leading dimensions */
  uint8_t a_type, b_type, d_type; /* deepgen_type; pointers are aligned to these */
  uint8_t epilogue_type;          /* of bias, bias_row, residual, multiplier */
  uint8_t scale_type;             /* of scales, alpha, beta and the bounds of clamp */
  uint32_t epilogue;              /* set of deepgen_epilogue */
  const deepgen_kernel* kernels;  /* by arch; within an arch best first, and the last one runs on every device of it */
  uint32_t kernel_count;
  const deepgen_kernel* volatile* selected; /* the CPU's kernel: points to one pointer, initially null */
  void* volatile* devices; /* the runtime's choices for GPUs: points to one pointer, initially null */
} deepgen_function;

/* Picks the first kernel of each function whose level this CPU has and reserves scratch address space.
   Generated libraries call it from a static initializer; calling it again is harmless. Returns a deepgen_status. */
int deepgen_register(const deepgen_function* functions, uint32_t count);

/* The x86-64 level (1..4, System V psABI) that this CPU and operating system support, from CPUID and XGETBV. */
uint32_t deepgen_cpu_level(void);

#ifdef __cplusplus
}
#endif
#endif
