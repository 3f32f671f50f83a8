// A prompt of 512 tokens goes through causal attention at once. Then four sequences, of other lengths each,
// decode a token with their caches, whose pages lie anywhere. Every result is checked against plain loops.
// Both are timed: the prompt beside two products of OpenBLAS with a softmax between, and decoding beside a
// loop that only reads as many bytes.
#include "composition.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

namespace {

using sizes = attention_kernels::prefill_sizes;
constexpr int64_t heads = sizes::heads, kv_heads = sizes::kv_heads, dim = sizes::head_dim;
constexpr int64_t prompt = sizes::most_queries, cache = attention_kernels::decode_sizes::most_keys,
                  sequences = 4;
constexpr int64_t page = 16;              // tokens, as PAGED says
constexpr int64_t token = kv_heads * dim; // floats of one

std::vector<float> random_values(int64_t count, float scale) {
  static std::mt19937 generator(1);
  std::uniform_real_distribution<float> uniform(-scale, scale);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& x : values) x = uniform(generator);
  return values;
}

void require(deepgen_status status) {
  if (status == DEEPGEN_OK) return;
  std::fprintf(stderr, "attention: %s\n", deepgen_status_string(status));
  std::exit(1);
}

/// The largest difference of a row of out to a plain loop over the keys that it sees. `q`, `out`: the row;
/// `k`, `v`: of its head.
double error_of_row(const float* q, const float* k, const float* v, const float* out, int64_t seen) {
  std::vector<double> p(static_cast<size_t>(seen));
  double most = -HUGE_VAL, sum = 0, worst = 0;
  for (int64_t j = 0; j < seen; ++j) {
    double s = 0;
    for (int64_t d = 0; d < dim; ++d) s += double(q[d]) * k[j * kv_heads * dim + d];
    p[size_t(j)] = s / std::sqrt(double(dim)), most = std::max(most, p[size_t(j)]);
  }
  for (double& x : p) sum += x = std::exp(x - most);
  for (int64_t d = 0; d < dim; ++d) {
    double y = 0;
    for (int64_t j = 0; j < seen; ++j) y += p[size_t(j)] / sum * v[j * kv_heads * dim + d];
    worst = std::max(worst, std::abs(y - out[d]));
  }
  return worst;
}

double seconds_of(const std::function<void()>& call) {
  double best = 1e9;
  for (int round = 0; round < 10; ++round) {
    const auto start = std::chrono::steady_clock::now();
    call();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

/// Beside prefill(), whose out is `expected` and which takes so many seconds: the largest difference.
double compare(const std::vector<float>& q, const std::vector<float>& k, const std::vector<float>& v,
               const std::vector<float>& expected, double seconds) {
  std::vector<float> out(q.size());
  deepgen_status status;
  if (!compose(q.data(), k.data(), v.data(), out.data(), status)) {
    std::puts("OpenBLAS is not installed, so that nothing is timed beside it");
    return 0;
  }
  require(status);
  double worst = 0;
  for (size_t i = 0; i < out.size(); ++i) worst = std::max(worst, double(std::abs(out[i] - expected[i])));
  const double composed = seconds_of([&] { compose(q.data(), k.data(), v.data(), out.data(), status); });
  std::printf(
      "two products of OpenBLAS and a softmax: %.0f us, %.2f times as long on one thread, difference %.1e\n",
      1e6 * composed, composed / seconds, worst);
  return worst;
}

double prefill() {
  const int threads = deepgen_get_num_threads();
  const auto q = random_values(prompt * heads * dim, 4), k = random_values(prompt * kv_heads * dim, 1),
             v = random_values(prompt * kv_heads * dim, 1);
  std::vector<float> out(q.size()), lse(size_t(prompt * heads));
  const auto call = [&] {
    require(
        attention_kernels::prefill(1, prompt, prompt, q.data(), k.data(), v.data(), out.data(), lse.data()));
  };
  const double seconds = seconds_of(call);
  double worst = 0;
  for (int64_t t = 0; t < prompt; ++t)
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t row = (t * heads + h) * dim, head = h / (heads / kv_heads) * dim;
      worst = std::max(
          worst, error_of_row(&q[size_t(row)], &k[size_t(head)], &v[size_t(head)], &out[size_t(row)], t + 1));
    }
  const double pairs = double(prompt) * double(prompt + 1) / 2;
  std::printf("prefill of %lld tokens: %.0f us, %.1f GFLOP/s, error %.1e\n", (long long)prompt, 1e6 * seconds,
              4e-9 * double(heads * dim) * pairs / seconds, worst);
  deepgen_set_num_threads(1);
  const double alone = seconds_of(call);
  deepgen_set_num_threads(threads);
  return std::max(worst, compare(q, k, v, out, alone));
}

/// The tokens of a sequence, one behind the other.
std::vector<float> in_order(const std::vector<float>& pool, const int32_t* pages, int64_t tokens) {
  std::vector<float> out;
  for (int64_t t = 0; t < tokens; ++t) {
    const auto from = pool.begin() + (pages[t / page] * page + t % page) * token;
    out.insert(out.end(), from, from + token);
  }
  return out;
}

/// Of a loop that does nothing else.
double seconds_to_read(int64_t floats) {
  const auto values = random_values(floats, 1);
  std::vector<uint32_t> words(values.size());
  std::memcpy(words.data(), values.data(), 4 * values.size());
  volatile uint32_t kept = 0;
  return seconds_of([&] {
    uint32_t all = 0;
    for (const uint32_t word : words) all ^= word;
    kept = all;
  });
}

double decode() {
  constexpr int64_t pages = cache / page; // of a sequence
  const int32_t lengths[sequences] = {1024, 1, 700, 333};
  const auto q = random_values(sequences * heads * dim, 4), k = random_values(sequences * cache * token, 1),
             v = random_values(sequences * cache * token, 1);
  std::vector<int32_t> table(sequences * pages);
  std::iota(table.begin(), table.end(), 0);
  std::shuffle(table.begin(), table.end(), std::mt19937(2));
  std::vector<float> out(q.size());
  deepgen_attention_args args;
  args.q = q.data(), args.key = k.data(), args.value = v.data(), args.out = out.data();
  args.batch = sequences, args.max_queries = 1, args.max_keys = cache, args.keys_used = lengths;
  args.page_table = table.data();
  const double seconds = seconds_of([&] { require(attention_kernels::decode(args)); });
  double worst = 0;
  int64_t keys = 0;
  for (int64_t b = 0; b < sequences; ++b) {
    const auto own_k = in_order(k, &table[size_t(b * pages)], lengths[b]),
               own_v = in_order(v, &table[size_t(b * pages)], lengths[b]);
    for (int64_t h = 0; h < heads; ++h) {
      const auto at = size_t((b * heads + h) * dim), head = size_t(h / (heads / kv_heads) * dim);
      worst = std::max(worst, error_of_row(&q[at], &own_k[head], &own_v[head], &out[at], lengths[b]));
    }
    keys += lengths[b];
  }
  std::printf("decoding %lld sequences: %.0f us, %.1f GB/s of keys and values, %.2f of a loop that reads "
              "them, error %.1e\n",
              (long long)sequences, 1e6 * seconds, 8e-9 * double(keys * token) / seconds,
              seconds_to_read(2 * keys * token) / seconds, worst);
  return worst;
}

} // namespace

int main() {
  const double filled = prefill(), decoded = decode(), worst = std::max(filled, decoded);
  if (!(worst < 1e-5)) return std::printf("wrong: an error of %g\n", worst), 1;
  std::puts("right");
  return 0;
}
