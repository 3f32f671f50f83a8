/* How a generated library describes a call of a vendor's library that may run in place of a kernel. C ABI. */
#ifndef DEEPGEN_VENDOR_CALL_H
#define DEEPGEN_VENDOR_CALL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A call of a vendor's library that does all that a function does, and was faster than the kernel that it
   stands beside (base/search/vendor_call.h). */
typedef struct deepgen_vendor_call {
  const char* text;      /* "openblas 0.3.21, then bias+gelu": what deepgen_selected_config() says of it */
  const char* version;   /* it is called in this version of the library alone: "13.1.0" */
  const char* device;    /* and on the device of this name, which it was timed on */
  uint32_t library;      /* deepgen_library */
  uint32_t flags;        /* DEEPGEN_VENDOR_... */
  uint64_t algorithm[8]; /* cublasLtMatmulAlgo_t; of hipblasLtMatmulAlgo_t, which is shorter, the rest is 0 */
  size_t workspace;      /* GPU: bytes that a call needs */
  const uint8_t* steps;  /* CPU: the epilogue behind the product, as numbers of epilogue_steps.h */
  uint32_t step_count;
  uint32_t volatile* state; /* CPU: the runtime's: points to one word, initially 0 */
} deepgen_vendor_call;
typedef enum deepgen_library {
  DEEPGEN_LIBRARY_OPENBLAS, /* cblas_sgemm(), cblas_dgemm(), on one thread */
  DEEPGEN_LIBRARY_CUBLASLT,
  DEEPGEN_LIBRARY_HIPBLASLT
} deepgen_library;
#define DEEPGEN_VENDOR_A_TRANSPOSED 1u
#define DEEPGEN_VENDOR_B_TRANSPOSED 2u
/* What the library does itself of the epilogue, in its own order: scales, bias and residual, activation. */
#define DEEPGEN_VENDOR_SCALE_A 4u
#define DEEPGEN_VENDOR_SCALE_B 8u
#define DEEPGEN_VENDOR_BIAS 16u
#define DEEPGEN_VENDOR_RESIDUAL 32u
#define DEEPGEN_VENDOR_RELU 64u
#define DEEPGEN_VENDOR_GELU_TANH 128u

#ifdef __cplusplus
}
#endif
#endif
