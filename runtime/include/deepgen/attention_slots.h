/* Slots of attention kernels, behind those of kernel_abi.h: X(enumerator, "name"). Part of kernel_abi.h.
   Beside them they take "bias", "m" (queries of an entry, at most), "n" (keys), "batch", "workspace" and the
   tiles: m0 to m1 are blocks of rows, n0 to n1 heads of K and V. Distances between tokens, heads and entries
   are in elements. */
#ifndef DEEPGEN_ATTENTION_SLOTS_H
#define DEEPGEN_ATTENTION_SLOTS_H

#define DEEPGEN_ATTENTION_SLOTS(X)                                                                           \
  X(Q, "q")                                                                                                  \
  X(KEY, "key")                                                                                              \
  X(VALUE, "value")                                                                                          \
  X(OUT, "out")                                                                                              \
  X(LSE, "lse")                                                                                              \
  X(SINK, "sink")                   /* a float for each head of Q */                                         \
  X(QUERY_OFFSETS, "query_offsets") /* batch + 1 values of int32; may be null, as the next two */            \
  X(KEY_OFFSETS, "key_offsets")                                                                              \
  X(KEYS_USED, "keys_used") /* batch values */                                                               \
  X(Q_TOKEN, "q_token")                                                                                      \
  X(Q_HEAD, "q_head")                                                                                        \
  X(Q_BATCH, "q_batch")                                                                                      \
  X(KEY_TOKEN, "key_token")                                                                                  \
  X(KEY_HEAD, "key_head")                                                                                    \
  X(KEY_BATCH, "key_batch")                                                                                  \
  X(VALUE_TOKEN, "value_token")                                                                              \
  X(VALUE_HEAD, "value_head")                                                                                \
  X(VALUE_BATCH, "value_batch")                                                                              \
  X(OUT_TOKEN, "out_token")                                                                                  \
  X(OUT_HEAD, "out_head")                                                                                    \
  X(OUT_BATCH, "out_batch")                                                                                  \
  X(LSE_TOKEN, "lse_token")                                                                                  \
  X(LSE_HEAD, "lse_head")                                                                                    \
  X(LSE_BATCH, "lse_batch")                                                                                  \
  X(SCORE_SCALE, "score_scale") /* the bits of an f32 */                                                     \
  X(SOFTCAP, "softcap")         /* the same; 0: none */                                                      \
  X(WINDOW_LEFT, "window_left") /* int64; negative: no end */                                                \
  X(WINDOW_RIGHT, "window_right")                                                                            \
  X(BIAS_QUERY, "bias_query") /* of "bias", whose keys follow each other; 0: one for all, as the next */     \
  X(BIAS_HEAD, "bias_head")                                                                                  \
  X(BIAS_BATCH, "bias_batch")                                                                                \
  X(PAGE_TABLE, "page_table") /* int32: pages of each entry; a batch stride of K and V is that of pages */   \
  X(PAGE_TABLE_STRIDE, "page_table_stride") /* int64, from one entry's to the next */                        \
  X(MAP_Q, "map_q")                         /* tensor maps of rank 4: dimension, token, head, entry (GPU) */ \
  X(MAP_KEY, "map_key")                                                                                      \
  X(MAP_VALUE, "map_value")

#endif
