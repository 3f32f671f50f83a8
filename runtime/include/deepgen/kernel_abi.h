/* What a compiled kernel expects and how a generated library describes it to the runtime. C ABI. Users of a tuned
   library do not need this header; generated sources, the runtime and deepgen-measure do. */
#ifndef DEEPGEN_KERNEL_ABI_H
#define DEEPGEN_KERNEL_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Argument slots, 8 bytes each. A kernel names the slots it wants, in its own order (docs/formats.md has the names).
   Pointers are stored as integers. Leading dimensions and batch strides are int64 in elements. alpha and beta are
   the bits of a value of the accumulator's type, f32 in the low four bytes. The ranges count tiles of the grid. */
typedef enum deepgen_arg {
  DEEPGEN_ARG_A,        /* "a" */
  DEEPGEN_ARG_B,        /* "b" */
  DEEPGEN_ARG_C,        /* "c": not read when beta is 0; may be equal to d */
  DEEPGEN_ARG_D,        /* "d" */
  DEEPGEN_ARG_BIAS,     /* "bias": N values of D's type, the same for every batch entry */
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
  DEEPGEN_ARG_WORKSPACE,/* "workspace": 64-byte aligned scratch, not shared with a concurrent call */
  DEEPGEN_ARG_M0,       /* "m0", "m1": tiles [m0, m1) along M */
  DEEPGEN_ARG_M1,
  DEEPGEN_ARG_N0,       /* "n0", "n1": tiles [n0, n1) along N */
  DEEPGEN_ARG_N1,
  DEEPGEN_ARG_B0,       /* "b0", "b1": batch entries [b0, b1) */
  DEEPGEN_ARG_B1,
  DEEPGEN_ARG_COUNT
} deepgen_arg;

typedef void (*deepgen_cpu_entry)(const uint64_t* args);

typedef struct deepgen_kernel {
  const char* arch;        /* "cpu" */
  const char* config;      /* "cpu_tile isa=4 mr=14 ..." */
  uint32_t isa;            /* arch "cpu": the x86-64 level it needs, 1..4 */
  deepgen_cpu_entry entry; /* arch "cpu" */
  const uint8_t* args;     /* deepgen_arg values in slot order */
  uint32_t arg_count;
  int64_t tiles_m, tiles_n, tiles_b; /* the grid that threads may split */
  int64_t grain_m, grain_n;          /* splits fall on multiples of these, in tiles */
  size_t workspace;                  /* bytes of scratch for one range of tiles */
} deepgen_kernel;

/* One GEMM of a generated library. `selected` is filled at start-up (or at the first call, if that is earlier). */
typedef struct deepgen_function {
  const char* name;    /* "kernels_ffn_up" */
  const char* problem; /* the problem key */
  int64_t m, n, k, batch;
  int64_t a_rows, a_columns, b_rows, b_columns; /* as stored; columns are the smallest leading dimensions */
  uint32_t type_bytes; /* 4: f32, 8: f64; also the alignment of every pointer */
  uint32_t has_bias;
  const deepgen_kernel* kernels; /* best first; the last one runs on every CPU of the arch */
  uint32_t kernel_count;
  const deepgen_kernel* volatile* selected; /* points to one pointer, initially null */
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
