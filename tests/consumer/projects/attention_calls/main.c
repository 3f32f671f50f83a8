/* Calls of sizes at those that the function is tuned for, between them and beyond, against plain loops. */
#include <kernels.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { H = KERNELS_ATTN_HEADS, G = KERNELS_ATTN_KV_HEADS, D = KERNELS_ATTN_HEAD_DIM };
enum { B = 7, Q = KERNELS_ATTN_MOST_QUERIES, K = KERNELS_ATTN_MOST_KEYS };

static float q[B * Q * H * D], k[B * K * G * D], v[B * K * G * D], out[B * Q * H * D], lse[B * H * Q];

static int is_wrong(int batch, int queries, int keys) {
  for (int b = 0; b < batch; ++b)
    for (int t = 0; t < queries; ++t)
      for (int h = 0; h < H; ++h) {
        const float* row = q + ((b * queries + t) * H + h) * D;
        double p[K], wanted[D] = {0}, sum = 0, most = -HUGE_VAL;
        const int seen = t + 1 + keys - queries;
        for (int j = 0; j < seen; ++j) {
          p[j] = 0;
          for (int d = 0; d < D; ++d) p[j] += row[d] * k[((b * keys + j) * G + h / (H / G)) * D + d];
          p[j] /= sqrt(D);
          most = fmax(most, p[j]);
        }
        for (int j = 0; j < seen; ++j) sum += p[j] = exp(p[j] - most);
        for (int j = 0; j < seen; ++j)
          for (int d = 0; d < D; ++d) wanted[d] += p[j] * v[((b * keys + j) * G + h / (H / G)) * D + d];
        for (int d = 0; d < D; ++d)
          if (!(fabs(out[((b * queries + t) * H + h) * D + d] - (seen > 0 ? wanted[d] / sum : 0)) < 1e-4))
            return 1;
        const double total = seen > 0 ? most + log(sum) : -HUGE_VAL, found = lse[(b * H + h) * queries + t];
        if (found != total && !(fabs(found - total) < 1e-4)) return 1;
      }
  return 0;
}

/* Prints each kernel once. */
static void say(const char* config) {
  static const char* known[64];
  for (int i = 0; i < 64; ++i) {
    if (known[i] && !strcmp(known[i], config)) return;
    if (known[i]) continue;
    known[i] = config;
    printf("kernel %d: %s\n", i + 1, config);
    return;
  }
}

int main(void) {
  static const int batches[] = {1, 2, 3, 6, 7}, queries[] = {1, 2, 5, 13, 40, 96, 128},
                   keys[] = {1, 60, 128, 256, 333, 512, 700};
  for (int i = 0; i < B * Q * H * D; ++i) q[i] = (float)(i * 7 % 31 - 15) / 8;
  for (int i = 0; i < B * K * G * D; ++i) k[i] = (float)(i * 5 % 23 - 11) / 8, v[i] = (float)(i * 3 % 17) / 8;
  for (unsigned b = 0; b < sizeof batches / sizeof *batches; ++b)
    for (unsigned t = 0; t < sizeof queries / sizeof *queries; ++t)
      for (unsigned j = 0; j < sizeof keys / sizeof *keys; ++j) {
        const deepgen_call_sizes sizes = {
            .m = queries[t], .n = keys[j], .k = DEEPGEN_AS_BUILT, .batch = batches[b]};
        const char* config = deepgen_selected_config_at(kernels_attn_function(), &sizes);
        if (!config) return puts("a call takes no kernel"), 1;
        say(config);
        for (int i = 0; i < B * Q * H * D; ++i) out[i] = NAN;
        const deepgen_status status = kernels_attn(batches[b], queries[t], keys[j], q, k, v, out, lse);
        if (status != DEEPGEN_OK) return puts(deepgen_status_string(status)), 1;
        if (is_wrong(batches[b], queries[t], keys[j]))
          return printf("%d x %d x %d: wrong by %s\n", batches[b], queries[t], keys[j], config), 1;
      }
  char text[200];
  const deepgen_status status = deepgen_verify(kernels_attn_function(), text, sizeof text);
  printf("%s; %s\n", text, deepgen_status_string(status));
  if (status != DEEPGEN_OK) return 1;
  puts("every call is right");
  return 0;
}
