/* Packing B once for many calls on the CPU. A part of runtime.h. */
#ifndef DEEPGEN_PACKING_H
#define DEEPGEN_PACKING_H

#ifndef DEEPGEN_RUNTIME_H
#error "include <deepgen/runtime.h>"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Of a function built with PREPACKED b. Weights are packed once, when they are loaded; calls then take the
   packed memory as `b`, and ignore ldb and stride_b. Functions with B of the same type, N, K, batch and gate
   share a layout, whatever their M, epilogue and LAYOUT. Packed memory may be written to a file and read
   again: it has no addresses. */
/* Bytes of a packed B; 0: the function takes B as it is stored. */
size_t deepgen_packed_b_size(const struct deepgen_function* function) DEEPGEN_API(deepgen_packed_b_size);
/* Packs B, which lies as the function's LAYOUT says; ldb and stride_b as in deepgen_gemm_args. `packed` is
   aligned to 64 bytes, has at least deepgen_packed_b_size() of them, and does not overlap B. Padding is
   written, too: equal B give equal bytes. DEEPGEN_ERROR_ARGUMENT where the function takes B as it is stored.
 */
deepgen_status deepgen_pack_b(const struct deepgen_function* function, const void* b, int64_t ldb,
                              int64_t stride_b, void* packed, size_t packed_bytes)
    DEEPGEN_API(deepgen_pack_b);
/* Reads all of `packed_bytes` bytes, as they came from a file, say, and tells whether calls may take them.
   Otherwise DEEPGEN_ERROR_PACKED, and `text`, unless null, gets a sentence of at most size - 1 bytes that
   says why: then pack B again. Calls themselves only check the header. */
deepgen_status deepgen_check_packed_b(const struct deepgen_function* function, const void* packed,
                                      size_t packed_bytes, char* text, size_t size)
    DEEPGEN_API(deepgen_check_packed_b);

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif
