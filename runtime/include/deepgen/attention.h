/* Calls of functions that deepgen_add_attention() made. A part of runtime.h. */
#ifndef DEEPGEN_ATTENTION_H
#define DEEPGEN_ATTENTION_H

#ifndef DEEPGEN_RUNTIME_H
#error "include <deepgen/runtime.h>"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Of a function that deepgen_add_attention() made; see the generated header for heads, dimensions and types,
   and which operands the function has. An element's place is entry * batch + token * token + head * head +
   its number in the row, by the strides below, in elements. 0 is dense: [batch, token, head, dimension], and
   [batch, head, token] of lse. Of K, V: 0 as the stride of a batch with key_offsets, and of Q, out and lse
   with query_offsets, means that these tell where entries begin. DEEPGEN_BROADCAST: one for all. */
typedef struct DEEPGEN_VERSIONED deepgen_attention_args {
  uint32_t size DEEPGEN_DEFAULT(sizeof(deepgen_attention_args)), abi
      DEEPGEN_DEFAULT(DEEPGEN_ABI_TAG); /* of this struct */
  const void* q DEEPGEN_DEFAULT(nullptr);
  const void* key DEEPGEN_DEFAULT(nullptr);
  const void* value DEEPGEN_DEFAULT(nullptr);
  void* out DEEPGEN_DEFAULT(nullptr);        /* must overlap none of the others; this is not checked */
  void* lse DEEPGEN_DEFAULT(nullptr);        /* float; required where the function has it, as the sink */
  const void* sink DEEPGEN_DEFAULT(nullptr); /* a float for each head of Q */
  /* Of a function with VARLEN, where its kernels read them; each may be null. Entry b has the queries
     query_offsets[b] to query_offsets[b + 1] of Q, out and lse, and the keys key_offsets[b] to key_offsets[b
     + 1]; without offsets, max_queries and max_keys. Of its keys, the first keys_used[b] count. Offsets must
     ascend, and no entry be longer than max_queries and max_keys, which is not checked. */
  const int32_t* query_offsets DEEPGEN_DEFAULT(nullptr);
  const int32_t* key_offsets DEEPGEN_DEFAULT(nullptr);
  const int32_t* keys_used DEEPGEN_DEFAULT(nullptr);
  int64_t batch DEEPGEN_DEFAULT(1), max_queries DEEPGEN_DEFAULT(DEEPGEN_AS_BUILT),
      max_keys DEEPGEN_DEFAULT(DEEPGEN_AS_BUILT); /* 0 and up, to what the function was built for */
  int64_t q_token DEEPGEN_DEFAULT(0), q_head DEEPGEN_DEFAULT(0), q_batch DEEPGEN_DEFAULT(0);
  int64_t key_token DEEPGEN_DEFAULT(0), key_head DEEPGEN_DEFAULT(0), key_batch DEEPGEN_DEFAULT(0);
  int64_t value_token DEEPGEN_DEFAULT(0), value_head DEEPGEN_DEFAULT(0), value_batch DEEPGEN_DEFAULT(0);
  int64_t out_token DEEPGEN_DEFAULT(0), out_head DEEPGEN_DEFAULT(0), out_batch DEEPGEN_DEFAULT(0);
  int64_t lse_token DEEPGEN_DEFAULT(0), lse_head DEEPGEN_DEFAULT(0), lse_batch DEEPGEN_DEFAULT(0);
  /* Both are rounded to f32, in which they must be neither 0 nor close to infinite. */
  double
      scale DEEPGEN_DEFAULT(0.0); /* of scores, of magnitude 2^-126 to 2^127; 0: 1 / sqrt(dimension of Q) */
  double softcap DEEPGEN_DEFAULT(0.0); /* 2^-126 to the greatest f32; 0: none. Of a function with SOFTCAP */
  int64_t window_left DEEPGEN_DEFAULT(-1), window_right
      DEEPGEN_DEFAULT(-1);                  /* keys on both sides of a query's own; -1: all. Of MASK window */
  void* workspace DEEPGEN_DEFAULT(nullptr); /* as of deepgen_gemm_args */
  size_t workspace_bytes DEEPGEN_DEFAULT(0);
  /* Of a function with PAGED, whose K and V are pages of so many tokens: key_batch and value_batch are the
     distances of pages then. Key j of entry b is token j % size of the page page_table[b * page_table_stride
     + j / size]. Of an entry's pages those with a key that counts are read. 0: as many as max_keys take. */
  const int32_t* page_table DEEPGEN_DEFAULT(nullptr);
  int64_t page_table_stride DEEPGEN_DEFAULT(0);
  /* Of a function with BIAS, of its type: what is added to the score of key j of query t of entry b, both by
     their numbers in the entry, is at b * bias_batch + head * bias_head + t * bias_query + j. -infinity hides
     the key. 0 is dense, [batch, head, max_queries, max_keys]; with DEEPGEN_BROADCAST of one of these, as
     one for all, dense without it. Nothing behind an entry's queries and keys is read. */
  const void* bias DEEPGEN_DEFAULT(nullptr);
  int64_t bias_query DEEPGEN_DEFAULT(0), bias_head DEEPGEN_DEFAULT(0), bias_batch DEEPGEN_DEFAULT(0);
} deepgen_attention_args;

#define DEEPGEN_ATTENTION_ARGS                                                                               \
  {sizeof(deepgen_attention_args),                                                                           \
   DEEPGEN_ABI_TAG,                                                                                          \
   NULL,                                                                                                     \
   NULL,                                                                                                     \
   NULL,                                                                                                     \
   NULL,                                                                                                     \
   NULL,                                                                                                     \
   NULL,                                                                                                     \
   NULL,                                                                                                     \
   NULL,                                                                                                     \
   NULL,                                                                                                     \
   1,                                                                                                        \
   DEEPGEN_AS_BUILT,                                                                                         \
   DEEPGEN_AS_BUILT,                                                                                         \
   0,                                                                                                        \
   0,                                                                                                        \
   0,                                                                                                        \
   0,                                                                                                        \
   0,                                                                                                        \
   0,                                                                                                        \
   0,                                                                                                        \
   0,                                                                                                        \
   0,                                                                                                        \
   0,                                                                                                        \
   0,                                                                                                        \
   0,                                                                                                        \
   0,                                                                                                        \
   0,                                                                                                        \
   0,                                                                                                        \
   0.0,                                                                                                      \
   0.0,                                                                                                      \
   -1,                                                                                                       \
   -1,                                                                                                       \
   NULL,                                                                                                     \
   0,                                                                                                        \
   NULL,                                                                                                     \
   0,                                                                                                        \
   NULL,                                                                                                     \
   0,                                                                                                        \
   0,                                                                                                        \
   0}

/* Run such a function, as deepgen_run_gemm() and deepgen_launch_gemm(). On a GPU the host reads neither
   lengths nor offsets, so that graphs replay. */
deepgen_status deepgen_run_attention(const struct deepgen_function* function,
                                     const deepgen_attention_args* args) DEEPGEN_API(deepgen_run_attention);
deepgen_status deepgen_launch_attention(const struct deepgen_function* function,
                                        const deepgen_attention_args* args, deepgen_stream stream)
    DEEPGEN_API(deepgen_launch_attention);

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif
