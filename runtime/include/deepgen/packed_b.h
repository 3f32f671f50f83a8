/* What a generated library tells the runtime of a B that calls take packed. A part of kernel_abi.h. */
#ifndef DEEPGEN_PACKED_B_H
#define DEEPGEN_PACKED_B_H

#include <stdint.h>

/* The packed B of a function: what deepgen_pack_b() reads, and the layout that it writes. */
typedef struct deepgen_packed_b {
  uint64_t layout; /* that of all of the function's kernels, see packed_layout.h */
  int64_t n, k;    /* columns of D; K */
  int64_t entries; /* of a batch */
  uint8_t type;    /* deepgen_type */
  uint8_t transposed, gated;
} deepgen_packed_b;

#endif
