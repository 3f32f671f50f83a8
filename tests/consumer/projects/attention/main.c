/* The functions of attention through their C interface, against plain loops; and calls that are refused. */
#include <kernels.h>

#include <math.h>
#include <stdio.h>

enum { H = KERNELS_ATTN_HEADS, G = KERNELS_ATTN_KV_HEADS, D = KERNELS_ATTN_HEAD_DIM, B = 2, Q = 77, K = 130 };

static float q[B * Q * H * D], k[B * K * G * D], v[B * K * G * D], out[B * Q * H * D], lse[B * H * Q];

/* What is added to scores, and how far its queries, heads and entries are apart; null: nothing. */
static const float* bias;
static int bias_query, bias_head, bias_batch;

/* The row of token t of entry b, which has `keys` keys from the row `first` of K on. */
static int wrong_row(int b, int t, int h, int queries, int keys) {
  const float* row = q + ((b * Q + t) * H + h) * D;
  double p[K], sum = 0, most = -HUGE_VAL;
  const int seen = t + 1 + keys - queries;
  for (int j = 0; j < seen; ++j) {
    p[j] = 0;
    for (int d = 0; d < D; ++d) p[j] += row[d] * k[((b * K + j) * G + h / (H / G)) * D + d] / sqrt(D);
    if (bias) p[j] += bias[b * bias_batch + h * bias_head + t * bias_query + j];
    most = fmax(most, p[j]);
  }
  for (int j = 0; j < seen; ++j) sum += p[j] = exp(p[j] - most);
  for (int d = 0; d < D; ++d) {
    double wanted = 0;
    for (int j = 0; j < seen; ++j) wanted += p[j] / sum * v[((b * K + j) * G + h / (H / G)) * D + d];
    const double found = out[((b * Q + t) * H + h) * D + d];
    if (!(fabs(found - wanted) < 1e-4))
      return printf("out[%d, %d, %d, %d] = %g, not %g\n", b, t, h, d, found, wanted);
  }
  const double wanted = seen > 0 ? most + log(sum) : -HUGE_VAL, found = lse[(b * H + h) * Q + t];
  return found == wanted || fabs(found - wanted) < 1e-4 ? 0
                                                        : printf("lse[%d, %d, %d] = %g\n", b, h, t, found);
}

static int verified(const struct deepgen_function* function) {
  char text[200];
  const deepgen_status status = deepgen_verify(function, text, sizeof text);
  printf("%s; %s; %s\n", deepgen_selected_config(function), text, deepgen_status_string(status));
  return status == DEEPGEN_OK;
}

static int refused(const char* what, deepgen_attention_args args, deepgen_status expected) {
  const deepgen_status status = kernels_attn_run(&args);
  return status == expected ? 0 : printf("%s: %s\n", what, deepgen_status_string(status));
}

static const int32_t used_by_none[1];

static int takes_what_it_should_not(deepgen_attention_args good) {
  deepgen_attention_args x = good;
  int wrong = 0;
  x.max_queries = 257, wrong |= refused("too many queries", x, DEEPGEN_ERROR_SIZE);
  x = good, x.max_keys = DEEPGEN_AS_BUILT, wrong |= refused("no keys given", x, DEEPGEN_ERROR_SIZE);
  x = good, x.key = NULL, wrong |= refused("no K", x, DEEPGEN_ERROR_NULL);
  x = good, x.lse = NULL, wrong |= refused("no lse", x, DEEPGEN_ERROR_NULL);
  x = good, x.q_token = -1, wrong |= refused("one token for all", x, DEEPGEN_OK);
  x = good, x.q_token = -2, wrong |= refused("a negative stride", x, DEEPGEN_ERROR_STRIDE);
  x = good, x.out_batch = -1, wrong |= refused("one entry of out", x, DEEPGEN_ERROR_STRIDE);
  x = good, x.key_batch = INT64_MAX / 2, wrong |= refused("a stride beyond memory", x, DEEPGEN_ERROR_STRIDE);
  x = good, x.softcap = 3, wrong |= refused("a softcap", x, DEEPGEN_ERROR_ARGUMENT);
  x = good, x.window_left = 3, wrong |= refused("a window", x, DEEPGEN_ERROR_ARGUMENT);
  x = good, x.sink = q, wrong |= refused("a sink", x, DEEPGEN_ERROR_ARGUMENT);
  x = good, x.page_table = used_by_none, wrong |= refused("pages", x, DEEPGEN_ERROR_ARGUMENT);
  x = good, x.scale = NAN, wrong |= refused("a scale that is no number", x, DEEPGEN_ERROR_ARGUMENT);
  x = good, x.scale = 1e-46, wrong |= refused("a scale that is 0 as a float", x, DEEPGEN_ERROR_ARGUMENT);
  x = good, x.scale = -1e300, wrong |= refused("a scale that is no float", x, DEEPGEN_ERROR_ARGUMENT);
  x = good, x.scale = 0x1p-126, wrong |= refused("the least scale", x, DEEPGEN_OK);
  x = good, x.q = (const char*)q + 1, wrong |= refused("an odd address", x, DEEPGEN_ERROR_ALIGNMENT);
  x = good, x.batch = 0, x.q = x.key = x.value = x.out = x.lse = NULL;
  wrong |= refused("no entries", x, DEEPGEN_OK);
  return wrong;
}

/* The same calls with K and V in pages, in falling order behind one that no entry has. */
enum { P = KERNELS_PAGED_PAGE_SIZE, PAGES = (K + P - 1) / P };

static float pages_k[(B * PAGES + 1) * P * G * D], pages_v[(B * PAGES + 1) * P * G * D];
static int32_t table[B * (PAGES + 1)];

static int paged_is_wrong(const int32_t* used) {
  for (size_t i = 0; i < sizeof pages_k / sizeof *pages_k; ++i) pages_k[i] = pages_v[i] = NAN;
  for (int b = 0; b < B; ++b)
    for (int i = 0; i <= PAGES; ++i) table[b * (PAGES + 1) + i] = i < PAGES ? B * PAGES - b * PAGES - i : -1;
  for (int b = 0; b < B; ++b)
    for (int j = 0; j < used[b]; ++j)
      for (int i = 0; i < G * D; ++i) {
        const int to = (table[b * (PAGES + 1) + j / P] * P + j % P) * G * D + i;
        pages_k[to] = k[(b * K + j) * G * D + i], pages_v[to] = v[(b * K + j) * G * D + i];
      }
  deepgen_attention_args args = DEEPGEN_ATTENTION_ARGS;
  args.q = q, args.key = pages_k, args.value = pages_v, args.out = out, args.lse = lse, args.keys_used = used;
  args.page_table = table, args.page_table_stride = PAGES + 1;
  args.batch = B, args.max_queries = Q, args.max_keys = K;
  for (int i = 0; i < B * Q * H * D; ++i) out[i] = NAN;
  deepgen_status status = kernels_paged_run(&args);
  if (status != DEEPGEN_OK) return puts(deepgen_status_string(status)), 1;
  for (int b = 0; b < B; ++b)
    for (int t = 0; t < Q; ++t)
      for (int h = 0; h < H; ++h)
        if (wrong_row(b, t, h, Q, used[b])) return 1;
  args.page_table = NULL;
  if (kernels_paged_run(&args) != DEEPGEN_ERROR_NULL) return puts("no table of pages"), 1;
  args.page_table = table, args.page_table_stride = -2;
  if (kernels_paged_run(&args) != DEEPGEN_ERROR_STRIDE) return puts("a negative stride of the table"), 1;
  args.page_table_stride = 0, args.key_offsets = table;
  if (kernels_paged_run(&args) != DEEPGEN_ERROR_ARGUMENT) return puts("offsets of pages"), 1;
  args.key_offsets = NULL, args.page_table = (const int32_t*)((const char*)table + 2);
  if (kernels_paged_run(&args) != DEEPGEN_ERROR_ALIGNMENT) return puts("an odd table"), 1;
  return 0;
}

/* Dense; one for all heads, whose other strides follow; and one for all queries in rows that are far apart.
 */
static float biases[B * H * Q * K];

static int bias_is_wrong(void) {
  static const int strides[][6] = {{0, 0, 0, K, Q * K, H * Q * K},
                                   {0, DEEPGEN_BROADCAST, 0, K, 0, Q * K},
                                   {DEEPGEN_BROADCAST, K + 5, 0, 0, K + 5, H * (K + 5)},
                                   {0, 0, DEEPGEN_BROADCAST, K, Q * K, 0}};
  for (int i = 0; i < B * H * Q * K; ++i) biases[i] = (float)(i * 11 % 29 - 14) / 4;
  deepgen_attention_args args = DEEPGEN_ATTENTION_ARGS;
  args.q = q, args.key = k, args.value = v, args.out = out, args.lse = lse;
  args.batch = B, args.max_queries = Q, args.max_keys = K, args.bias = biases;
  for (unsigned i = 0; i < sizeof strides / sizeof *strides; ++i) {
    args.bias_query = strides[i][0], args.bias_head = strides[i][1], args.bias_batch = strides[i][2];
    bias_query = strides[i][3], bias_head = strides[i][4], bias_batch = strides[i][5];
    if (kernels_biased_run(&args) != DEEPGEN_OK) return puts("a bias"), 1;
    bias = biases;
    for (int b = 0; b < B; ++b)
      for (int t = 0; t < Q; ++t)
        for (int h = 0; h < H; ++h)
          if (wrong_row(b, t, h, Q, K)) return printf("bias %u\n", i), 1;
    bias = NULL;
  }
  args.bias = NULL;
  if (kernels_biased_run(&args) != DEEPGEN_ERROR_NULL) return puts("no bias"), 1;
  args.bias = biases, args.bias_head = -2;
  if (kernels_biased_run(&args) != DEEPGEN_ERROR_STRIDE) return puts("a negative stride of a bias"), 1;
  args.bias_head = INT64_MAX / 2;
  if (kernels_biased_run(&args) != DEEPGEN_ERROR_STRIDE) return puts("a bias beyond memory"), 1;
  args.bias_head = 0, args.bias = (const char*)biases + 2;
  if (kernels_biased_run(&args) != DEEPGEN_ERROR_ALIGNMENT) return puts("an odd bias"), 1;
  args.bias = biases;
  if (kernels_attn_run(&args) != DEEPGEN_ERROR_ARGUMENT) return puts("a bias that the function lacks"), 1;
  return 0;
}

int main(void) {
  for (int i = 0; i < B * Q * H * D; ++i) q[i] = (float)(i * 7 % 31 - 15) / 8;
  for (int i = 0; i < B * K * G * D; ++i) k[i] = (float)(i * 5 % 23 - 11) / 8, v[i] = (float)(i * 3 % 17) / 8;
  deepgen_status status = kernels_attn(B, Q, K, q, k, v, out, lse);
  if (status != DEEPGEN_OK) return puts(deepgen_status_string(status)), 1;
  for (int b = 0; b < B; ++b)
    for (int t = 0; t < Q; ++t)
      for (int h = 0; h < H; ++h)
        if (wrong_row(b, t, h, Q, K)) return 1;

  const int32_t used[B] = {K - 9, 60};
  deepgen_attention_args args =
      DEEPGEN_ATTENTION_ARGS; /* a cache, of which the second entry has fewer keys than rows */
  args.q = q, args.key = k, args.value = v, args.out = out, args.lse = lse, args.keys_used = used;
  args.batch = B, args.max_queries = Q, args.max_keys = K;
  status = kernels_attn_run(&args);
  if (status != DEEPGEN_OK) return puts(deepgen_status_string(status)), 1;
  for (int b = 0; b < B; ++b)
    for (int t = 0; t < Q; ++t)
      for (int h = 0; h < H; ++h)
        if (wrong_row(b, t, h, Q, used[b])) return 1;
  if (takes_what_it_should_not(args) || paged_is_wrong(used) || bias_is_wrong()) return 1;

  for (int threads = 1; threads <= 3; threads += 2) {
    deepgen_set_num_threads(threads);
    if (!verified(kernels_attn_function()) || !verified(kernels_near_function()) ||
        !verified(kernels_paged_function()) || !verified(kernels_biased_function()) ||
        !verified(kernels_up_function()))
      return 1;
  }
  puts("ok");
  return 0;
}
