/* What a compiled kernel expects and how a generated library describes it to the runtime. C ABI. Users of a
   tuned library do not need this header; generated sources, the runtime and deepgen-measure do. */
#ifndef DEEPGEN_KERNEL_ABI_H
#define DEEPGEN_KERNEL_ABI_H

#include "abi.h"
#include "attention_slots.h"
#include "packed_b.h"
#include "vendor_call.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Argument slots. A kernel names the slots it wants, in its own order, by the names in quotes. Pointers are
   stored as integers. Leading dimensions and batch strides are int64 in elements (a stride of 0: one matrix
   for the whole batch). alpha, beta and the bounds of clamp are the bits of a value of the epilogue's type
   (f64; i32 for an i32 D; else f32), in the low bytes. The ranges count tiles of the grid. */
typedef enum deepgen_arg {
  DEEPGEN_ARG_A,         /* "a" */
  DEEPGEN_ARG_B,         /* "b" */
  DEEPGEN_ARG_C,         /* "c": not read when beta is 0; may be equal to d */
  DEEPGEN_ARG_D,         /* "d" */
  DEEPGEN_ARG_BIAS,      /* "bias": N values, the same for every batch entry */
  DEEPGEN_ARG_LDA,       /* "lda" */
  DEEPGEN_ARG_LDB,       /* "ldb" */
  DEEPGEN_ARG_LDC,       /* "ldc" */
  DEEPGEN_ARG_LDD,       /* "ldd" */
  DEEPGEN_ARG_STRIDE_A,  /* "stride_a": from one batch entry to the next */
  DEEPGEN_ARG_STRIDE_B,  /* "stride_b" */
  DEEPGEN_ARG_STRIDE_C,  /* "stride_c" */
  DEEPGEN_ARG_STRIDE_D,  /* "stride_d" */
  DEEPGEN_ARG_ALPHA,     /* "alpha" */
  DEEPGEN_ARG_BETA,      /* "beta" */
  DEEPGEN_ARG_WORKSPACE, /* "workspace": scratch, not shared with a concurrent call */
  DEEPGEN_ARG_M0,        /* "m0", "m1": tiles [m0, m1) along M (CPU) */
  DEEPGEN_ARG_M1,
  DEEPGEN_ARG_N0, /* "n0", "n1": tiles [n0, n1) along N (CPU) */
  DEEPGEN_ARG_N1,
  DEEPGEN_ARG_B0, /* "b0", "b1": batch entries [b0, b1) (CPU) */
  DEEPGEN_ARG_B1,
  DEEPGEN_ARG_BIAS_ROW,          /* "bias_row": M values */
  DEEPGEN_ARG_RESIDUAL,          /* "residual": M x N, may be equal to d */
  DEEPGEN_ARG_LD_RESIDUAL,       /* "ld_residual" */
  DEEPGEN_ARG_STRIDE_RESIDUAL,   /* "stride_residual" */
  DEEPGEN_ARG_MULTIPLIER,        /* "multiplier": M x N, may be equal to d */
  DEEPGEN_ARG_LD_MULTIPLIER,     /* "ld_multiplier" */
  DEEPGEN_ARG_STRIDE_MULTIPLIER, /* "stride_multiplier" */
  DEEPGEN_ARG_SCALE_A,           /* "scale_a", "scale_b", "scale_d": one value each */
  DEEPGEN_ARG_SCALE_B,
  DEEPGEN_ARG_SCALE_D,
  DEEPGEN_ARG_SCALE_ROW, /* "scale_row": M values */
  DEEPGEN_ARG_SCALE_COL, /* "scale_col": N values */
  DEEPGEN_ARG_CLAMP_LOW, /* "clamp_low", "clamp_high" */
  DEEPGEN_ARG_CLAMP_HIGH,
  DEEPGEN_ARG_OFFSETS, /* "offsets": groups + 1 values of int32, the first row of each group and the end */
  DEEPGEN_ARG_MAP_A,   /* "map_a", ...: a tensor map of 128 bytes, or an array of them, by value (GPU) */
  DEEPGEN_ARG_MAP_B,
  DEEPGEN_ARG_MAP_C,
  DEEPGEN_ARG_MAP_D,
  DEEPGEN_ARG_MAP_RESIDUAL,
  DEEPGEN_ARG_MAP_MULTIPLIER,
  /* of rows, beside d, ldd, bias, residual, ld_residual, workspace, m0 and m1 */
  DEEPGEN_ARG_X,               /* "x" */
  DEEPGEN_ARG_LDX,             /* "ldx" */
  DEEPGEN_ARG_SCALE,           /* "scale": N values */
  DEEPGEN_ARG_RESIDUAL_OUT,    /* "residual_out": M x N, may be equal to the residual */
  DEEPGEN_ARG_LD_RESIDUAL_OUT, /* "ld_residual_out" */
  DEEPGEN_ARG_ROW_SCALES,      /* "row_scales": M values that are written */
  DEEPGEN_ARG_EPSILON,         /* "epsilon": the bits of an f32 */
  DEEPGEN_ARG_SLOPE,           /* "slope": N values, of GEMMs */
  /* sizes of this call, int64, where the function has a range of them */
  DEEPGEN_ARG_M,     /* "m" */
  DEEPGEN_ARG_N,     /* "n" */
  DEEPGEN_ARG_K,     /* "k" */
  DEEPGEN_ARG_BATCH, /* "batch" */
#define DEEPGEN_SLOT(enumerator, name) DEEPGEN_ARG_##enumerator,
  DEEPGEN_ATTENTION_SLOTS(DEEPGEN_SLOT)
#undef DEEPGEN_SLOT
      DEEPGEN_ARG_COUNT
} deepgen_arg;

/* The names of the slots, in order, as kernels and kernel files spell them. */
#define DEEPGEN_ARG_NAMES                                                                                    \
  "a", "b", "c", "d", "bias", "lda", "ldb", "ldc", "ldd", "stride_a", "stride_b", "stride_c", "stride_d",    \
      "alpha", "beta", "workspace", "m0", "m1", "n0", "n1", "b0", "b1", "bias_row", "residual",              \
      "ld_residual", "stride_residual", "multiplier", "ld_multiplier", "stride_multiplier", "scale_a",       \
      "scale_b", "scale_d", "scale_row", "scale_col", "clamp_low", "clamp_high", "offsets", "map_a",         \
      "map_b", "map_c", "map_d", "map_residual", "map_multiplier", "x", "ldx", "scale", "residual_out",      \
      "ld_residual_out", "row_scales", "epsilon", "slope", "m", "n", "k",                                    \
      "batch" DEEPGEN_ATTENTION_SLOTS(DEEPGEN_SLOT_NAME)
#define DEEPGEN_SLOT_NAME(enumerator, name) , name

/* What a CPU kernel needs beside its x86-64 level, which is the low byte. */
#define DEEPGEN_ISA_LEVEL 0xffu
#define DEEPGEN_ISA_AVXVNNI 0x100u
#define DEEPGEN_ISA_AVX512VNNI 0x200u
#define DEEPGEN_ISA_AVX512BF16 0x400u
#define DEEPGEN_ISA_AMX 0x800u /* amx-tile, amx-int8, amx-bf16, and the system's permission to use tiles */

typedef void (*deepgen_cpu_entry)(const uint64_t* args);

/* The sizes that a function may have a range of, in this order: of a call, in tables by size, and from "m" on
   as slots. */
#define DEEPGEN_SIZES 4 /* M, N, K, batch */
typedef struct deepgen_range {
  int64_t least, most; /* equal: the size is fixed */
} deepgen_range;

/* A number that follows from the sizes of a call: factor * the product of ceil(size / step) over the steps
   that are not 0. */
typedef struct deepgen_size_rule {
  int64_t factor; /* 0: there is no rule, and the number is fixed */
  int64_t steps[DEEPGEN_SIZES];
} deepgen_size_rule;

/* One launch of a GPU kernel (base/kernel/kernel.h, Launch). */
typedef struct deepgen_launch {
  const char* entry; /* symbol in the code object */
  uint32_t grid[3], block[3], cluster[3];
  uint32_t shared;                                              /* dynamic shared memory, bytes */
  uint32_t flags;                                               /* DEEPGEN_LAUNCH_... */
  const deepgen_size_rule* grid_rules DEEPGEN_DEFAULT(nullptr); /* three; null: the grid is fixed */
} deepgen_launch;
#define DEEPGEN_LAUNCH_PERSISTENT 1u /* grid[0] is lowered to the blocks that fit on the device at once */
#define DEEPGEN_LAUNCH_DEPENDENT 2u  /* programmatic dependent launch; the code waits itself */

/* A tensor map that the runtime encodes at each call (base/kernel/kernel.h, TensorMap). Those of one operand
   stand next to each other: they are the array that its argument is. */
typedef struct deepgen_tensor_map {
  uint8_t operand; /* DEEPGEN_ARG_A, _B, _C, _D, _RESIDUAL, _MULTIPLIER, _Q, _KEY or _VALUE */
  uint32_t box_columns, box_rows;
  uint16_t swizzle, promotion; /* bytes */
  /* The operand itself when packed_ld is 0. Otherwise its copy in the workspace, which an earlier launch of
     the call makes: at this offset in bytes, its leading dimension in elements; batch entries are rows * ld
     elements apart. */
  uint64_t packed_offset;
  int64_t packed_rows, packed_columns, packed_ld;
  /* Which size of the call the first two are to be multiplied by, as in deepgen_operand. */
  uint8_t packed_rows_by DEEPGEN_DEFAULT(0), packed_columns_by DEEPGEN_DEFAULT(0);
  /* Not 0: which size of the call its rows lie along. A copy then has as many rows as that size is more than
     a multiple of box_rows, rounded up to a multiple of 8, or box_rows where it is none more. */
  uint8_t rest_of DEEPGEN_DEFAULT(0);
} deepgen_tensor_map;

/* Code for one GPU arch. The runtime keeps what it loaded in `state`. */
typedef struct deepgen_gpu_code {
  const char* target; /* "sm_90": the code runs on major version 9 and minor >= 0, its PTX on all later
                         devices too; "sm_90a": on 9.0 alone. "gfx942": on that alone, whatever its settings;
                         "gfx942:xnack-": with that setting */
  const void* code;   /* a cubin, null when there is only PTX; an AMD code object */
  size_t code_bytes;
  const char* ptx;       /* zero-terminated; null when there is none */
  void* volatile* state; /* points to one pointer, initially null */
} deepgen_gpu_code;

/* What a GPU kernel asks of one operand; a call that does not meet it takes the next kernel. */
typedef struct deepgen_requirement {
  uint32_t align;      /* bytes: its base, leading dimension and batch stride; a power of two */
  uint64_t most_pitch; /* bytes from one row of a matrix to the next, at most; 0: any */
} deepgen_requirement;

typedef struct deepgen_kernel {
  const char* arch;    /* "cpu", "sm_90a", ... */
  const char* config;  /* "cpu_tile isa=4 mr=14 ..." */
  const uint8_t* args; /* deepgen_arg values in slot order */
  uint32_t arg_count;
  size_t workspace; /* bytes of scratch: CPU: for one range of tiles; GPU: for a call */
  /* arch "cpu" */
  uint32_t isa; /* the x86-64 level it needs, 1..4, with DEEPGEN_ISA_... bits */
  deepgen_cpu_entry entry;
  int64_t tiles_m, tiles_n, tiles_b; /* the grid that threads may split */
  int64_t grain_m, grain_n;          /* splits fall on multiples of these, in tiles */
  /* GPUs */
  const char* device;                      /* tuned on the device of this name; null: for any */
  const deepgen_requirement* requirements; /* one for each operand of the function; null for arch "cpu" */
  const deepgen_gpu_code* gpu;             /* null for arch "cpu" */
  const deepgen_launch* launches;
  uint32_t launch_count;
  const deepgen_tensor_map* maps;
  uint32_t map_count;
  /* of a function with ranges; else null, null and 0 */
  const deepgen_range* taken;     /* by size: the calls that take it; null: all do. 0 is in each range */
  const deepgen_size_rule* rules; /* DEEPGEN_RULE_... */
  size_t workspace_fixed;         /* a call needs these bytes and those of its rule, at most `workspace` */
  const deepgen_vendor_call* vendor DEEPGEN_DEFAULT(nullptr); /* runs instead where it can; null: none */
  /* of a batch invariant function's GPU kernels: which of their orders of sums it has, from 1; else 0. A
   * device runs those of one order alone */
  uint32_t sum_order DEEPGEN_DEFAULT(0);
  uint64_t packed_b DEEPGEN_DEFAULT(0); /* the layout in which it reads B (packed_layout.h); 0: as stored */
  uint32_t cut DEEPGEN_DEFAULT(0);      /* arch "cpu": how threads share a call, DEEPGEN_CUT_... */
} deepgen_kernel;
/* By the runtime's rule, as of batches and where the others make one task; along M; along N; along both. */
enum { DEEPGEN_CUT_RULE, DEEPGEN_CUT_ROWS, DEEPGEN_CUT_COLUMNS, DEEPGEN_CUT_BOTH };
typedef enum deepgen_rule {
  DEEPGEN_RULE_TILES_M,
  DEEPGEN_RULE_TILES_N,
  DEEPGEN_RULE_TILES_B,
  DEEPGEN_RULE_WORKSPACE,
  DEEPGEN_RULE_COUNT
} deepgen_rule;

/* Element types, numbered as Type in base/problem/problem.h. */
typedef enum deepgen_type {
  DEEPGEN_F32,
  DEEPGEN_F64,
  DEEPGEN_F16,
  DEEPGEN_BF16,
  DEEPGEN_TF32,
  DEEPGEN_E4M3,
  DEEPGEN_E5M2,
  DEEPGEN_I8,
  DEEPGEN_I32,
  DEEPGEN_U8
} deepgen_type;

/* One operand of a function, as base/problem/signature.h has it: where a call passes it, and what is checked
 * of it.
 */
typedef struct deepgen_operand {
  uint8_t slot;       /* deepgen_arg of its address; of a scalar, of its value */
  uint8_t ld, stride; /* of a matrix: deepgen_arg of its leading dimension and batch stride;
                         DEEPGEN_ARG_COUNT: it has none */
  uint8_t type;       /* deepgen_type; addresses are aligned to it, scalars rounded to it */
  uint32_t flags;     /* DEEPGEN_OPERAND_... */
  /* Offsets in the struct of arguments that its function takes. */
  uint32_t field, ld_field, stride_field;
  /* Which size of the call each of the three below is to be multiplied by: 1 M, 2 N, 3 K, 4 batch; 0: none.
   */
  uint8_t rows_by, columns_by, entries_by;
  int64_t rows, columns; /* of one entry as stored; the columns are the smallest leading dimension */
  int64_t entries;       /* of a batch, or matrices of groups */
} deepgen_operand;
#define DEEPGEN_OPERAND_MATRIX 1u
#define DEEPGEN_OPERAND_SCALAR 2u     /* a double in the struct of arguments */
#define DEEPGEN_OPERAND_OUT 4u        /* written: entries must not overlap, nor two such matrices */
#define DEEPGEN_OPERAND_OPTIONAL 8u   /* read only where beta is not 0 */
#define DEEPGEN_OPERAND_IN_PLACE 16u  /* a matrix that is written may be this one, or must not overlap it */
#define DEEPGEN_OPERAND_ASCENDING 32u /* a scalar, at most as large as the one behind it */
#define DEEPGEN_OPERAND_NOT_NEGATIVE 64u /* a scalar, finite and at least 0 */
#define DEEPGEN_OPERAND_PACKED 128u /* B of a function that takes it packed: it is checked by its header */
#define DEEPGEN_MOST_OPERANDS 24

/* Whose struct of arguments a function takes. */
typedef enum deepgen_op {
  DEEPGEN_OP_GEMM,     /* deepgen_gemm_args */
  DEEPGEN_OP_ROWS,     /* deepgen_rows_args */
  DEEPGEN_OP_ATTENTION /* deepgen_attention_args */
} deepgen_op;

/* Begins deepgen_function: the runtime reads on where it equals its own. */
typedef struct deepgen_layout {
  uint32_t function, abi; /* bytes of deepgen_function; DEEPGEN_ABI_TAG */
  uint32_t kernel, launch, map, code, operand, requirement, vendor; /* bytes of the other structs */
} deepgen_layout;
#define DEEPGEN_LAYOUT                                                                                       \
  {sizeof(struct deepgen_function), DEEPGEN_ABI_TAG,                                                         \
   sizeof(deepgen_kernel),          sizeof(deepgen_launch),                                                  \
   sizeof(deepgen_tensor_map),      sizeof(deepgen_gpu_code),                                                \
   sizeof(deepgen_operand),         sizeof(deepgen_requirement),                                             \
   sizeof(deepgen_vendor_call)}

/* One function of a generated library. `selected` is filled at start-up (or at the first call, if that is
 * earlier). */
typedef struct deepgen_function {
  deepgen_layout layout DEEPGEN_DEFAULT(DEEPGEN_LAYOUT);
  const char* name;    /* "kernels_ffn_up" */
  const char* problem; /* the problem key */
  uint32_t op;         /* deepgen_op */
  uint32_t operand_count;
  const deepgen_operand* operands;
  double work; /* how long a call takes, as operations of a GEMM on one core; little work is not split */
  deepgen_range sizes[DEEPGEN_SIZES]; /* `work` is that of the largest */
  const deepgen_kernel* kernels; /* by arch; within an arch best first, and the last one runs on every device
                                    of it, and takes all sizes */
  uint32_t kernel_count;
  const deepgen_kernel* volatile* selected; /* the CPU's kernel: points to one pointer, initially null */
  void* volatile* devices; /* the runtime's choices for GPUs: points to one pointer, initially null */
  const deepgen_packed_b* packed_b DEEPGEN_DEFAULT(nullptr); /* null: B is taken as it is stored */
} deepgen_function;

/* Picks the first kernel of each function whose level this CPU has and reserves scratch address space.
   Generated libraries call it from a static initializer; calling it again is harmless. Returns a
   deepgen_status. */
int deepgen_register(const deepgen_function* functions, uint32_t count) DEEPGEN_API(deepgen_register);

/* Gives back what the runtime keeps for the functions, and their code on GPUs, which must be idle. Generated
   libraries call it when they are unloaded. When the process exits it does nothing, as other threads may
   still call. */
void deepgen_unregister(const deepgen_function* functions, uint32_t count) DEEPGEN_API(deepgen_unregister);

/* The x86-64 level (1..4, System V psABI) that this CPU and operating system support, from CPUID and XGETBV.
 */
uint32_t deepgen_cpu_level(void) DEEPGEN_API(deepgen_cpu_level);

#ifdef __cplusplus
}
#endif
#endif
