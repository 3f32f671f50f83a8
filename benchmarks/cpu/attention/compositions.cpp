#include "compositions.h"

#include "../../../measure/values/clones.h"
#include "../../../runtime/cpu/activation.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <dlfcn.h>
#include <dnnl.hpp>
#include <memory>
#include <unordered_map>

namespace {

/// C = alpha A B or alpha A B^T, row-major, [m,k] by [k,n].
using Product =
    std::function<void(bool transposed, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
                       int64_t lda, const float* b, int64_t ldb, float* c, int64_t ldc)>;

/// A careful user's: vectors for maximum, powers and sum. Behind `seen` come zeros, up to `keys`.
DEEPGEN_CLONES void softmax_row(float* __restrict row, int64_t seen, int64_t keys) {
  constexpr int64_t kLanes = 16;
  float most[kLanes], sums[kLanes] = {}, greatest = row[0], sum = 0;
  for (float& x : most) x = row[0];
  const int64_t whole = seen / kLanes * kLanes;
  for (int64_t j = 0; j < whole; j += kLanes)
    for (int64_t l = 0; l < kLanes; ++l) most[l] = most[l] < row[j + l] ? row[j + l] : most[l];
  for (int64_t j = whole; j < seen; ++j) greatest = std::max(greatest, row[j]);
  for (const float x : most) greatest = std::max(greatest, x);
  for (int64_t j = 0; j < whole; j += kLanes)
    for (int64_t l = 0; l < kLanes; ++l) {
      const float p = deepgen::activation::exp(row[j + l] - greatest);
      row[j + l] = p, sums[l] += p;
    }
  for (int64_t j = whole; j < seen; ++j) sum += row[j] = deepgen::activation::exp(row[j] - greatest);
  for (const float x : sums) sum += x;
  const float share = 1 / sum;
  for (int64_t j = 0; j < seen; ++j) row[j] *= share;
  std::fill(row + seen, row + keys, 0.0f);
}

/// `rows` rows of Q, `stride` floats apart, that all are of one head of K; row i sees seen(i) keys.
template <typename Seen>
void block(const Call& c, const Product& product, std::vector<float>& scores, const float* q,
           const float* key, const float* value, float* out, int64_t rows, int64_t stride, const Seen& seen) {
  const int64_t most = seen(rows - 1), token = c.kv_heads * c.dimension;
  const float scale = 1 / std::sqrt(float(c.dimension));
  scores.resize(size_t(rows * most));
  product(true, rows, most, c.dimension, scale, q, stride, key, token, scores.data(), most);
  for (int64_t i = 0; i < rows; ++i) softmax_row(&scores[size_t(i * most)], seen(i), most);
  product(false, rows, c.dimension, most, 1, scores.data(), most, value, token, out, stride);
}

/// A call with one query takes the rows of all heads that share a head of K together.
void by_products(const Call& c, AttentionOperands& x, const Product& product, std::vector<float>& scores) {
  constexpr int64_t kRows = 128;
  const int64_t d = c.dimension, group = c.group(), token = c.heads * d;
  for (int64_t e = 0; e < c.batch; ++e)
    for (int64_t g = 0; g < c.kv_heads; ++g) {
      const size_t at = size_t((e * c.queries * c.heads + g * group) * d),
                   from = size_t((e * c.keys * c.kv_heads + g) * d);
      const float *key = &x.key[from], *value = &x.value[from];
      if (c.queries == 1) {
        block(c, product, scores, &x.q[at], key, value, &x.out[at], group, d,
              [&](int64_t) { return c.keys; });
        continue;
      }
      for (int64_t h = 0; h < group; ++h)
        for (int64_t t = 0; t < c.queries; t += kRows) {
          const size_t row = at + size_t(h * d + t * token);
          block(c, product, scores, &x.q[row], key, value, &x.out[row], std::min(kRows, c.queries - t), token,
                [&](int64_t i) { return c.seen(t + i); });
        }
    }
}

Arm composition(const char* name, const Call& c, AttentionOperands& x, Product product) {
  auto scores = std::make_shared<std::vector<float>>();
  return {name, true, [=, &c, &x] { by_products(c, x, product, *scores); }};
}

void add_openblas(std::vector<Arm>& arms, const Call& c, AttentionOperands& x) {
  using Cblas =
      void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
  static void* handle = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (!handle) {
    std::fprintf(stderr, "not installed, left out: libopenblas.so.0\n");
    return;
  }
  if (auto set = reinterpret_cast<void (*)(int)>(dlsym(handle, "openblas_set_num_threads"))) set(1);
  const auto gemm = reinterpret_cast<Cblas>(dlsym(handle, "cblas_sgemm"));
  arms.push_back(
      composition("OpenBLAS", c, x,
                  [gemm](bool transposed, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
                         int64_t lda, const float* b, int64_t ldb, float* d, int64_t ldd) {
                    gemm(101, 111, transposed ? 112 : 111, int(m), int(n), int(k), alpha, a, int(lda), b,
                         int(ldb), 0, d, int(ldd));
                  }));
}

void add_dnnl_sgemm(std::vector<Arm>& arms, const Call& c, AttentionOperands& x) {
  arms.push_back(composition("oneDNN sgemm", c, x,
                             [](bool transposed, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
                                int64_t lda, const float* b, int64_t ldb, float* d, int64_t ldd) {
                               dnnl_sgemm('N', transposed ? 'T' : 'N', m, n, k, alpha, a, lda, b, ldb, 0, d,
                                          ldd);
                             }));
}

/// Two matmuls of all heads with a softmax between, which works in place.
struct Primitives {
  dnnl::engine cpu{dnnl::engine::kind::cpu, 0};
  dnnl::stream queue{cpu};
  dnnl::primitive scores, softmax, sums;
  std::unordered_map<int, dnnl::memory> score_args, softmax_args, sum_args;
  std::vector<float> mask;

  Primitives(const Call& c, AttentionOperands& x) {
    using namespace dnnl;
    using dims = memory::dims;
    constexpr auto f32 = memory::data_type::f32;
    const int64_t h = c.heads, d = c.dimension, t = c.queries, s = c.keys;
    const memory::desc q({c.batch, h, t, d}, f32, dims{t * h * d, d, h * d, 1}),
        key({c.batch, h, d, s}, f32, dims{s * h * d, d, 1, h * d}),
        value({c.batch, h, s, d}, f32, dims{s * h * d, d, h * d, 1}),
        p({c.batch, h, t, s}, f32, memory::format_tag::abcd),
        masks({1, 1, t, s}, f32, memory::format_tag::abcd);
    primitive_attr attributes;
    attributes.set_output_scales(0, {1 / std::sqrt(float(d))});
    if (c.causal) {
      post_ops posts;
      posts.append_binary(algorithm::binary_add, masks);
      attributes.set_post_ops(posts);
    }
    scores = matmul(matmul::primitive_desc(matmul::desc(q, key, p), attributes, cpu));
    softmax = softmax_v2_forward(softmax_v2_forward::primitive_desc(
        {prop_kind::forward_inference, algorithm::softmax_accurate, p, p, 3}, cpu));
    sums = matmul(matmul::primitive_desc(matmul::desc(p, value, q), cpu));
    memory middle(p, cpu);
    score_args = {{DNNL_ARG_SRC, memory(q, cpu, x.q.data())},
                  {DNNL_ARG_WEIGHTS, memory(key, cpu, x.key.data())},
                  {DNNL_ARG_DST, middle}};
    if (c.causal) {
      mask.assign(size_t(t * s), 0);
      for (int64_t i = 0; i < t; ++i)
        std::fill(mask.begin() + i * s + c.seen(i), mask.begin() + (i + 1) * s, -INFINITY);
      score_args.insert(
          {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, memory(masks, cpu, mask.data())});
    }
    softmax_args = {{DNNL_ARG_SRC, middle}, {DNNL_ARG_DST, middle}};
    sum_args = {{DNNL_ARG_SRC, middle},
                {DNNL_ARG_WEIGHTS, memory(value, cpu, x.value.data())},
                {DNNL_ARG_DST, memory(q, cpu, x.out.data())}};
  }
  void operator()() {
    scores.execute(queue, score_args);
    softmax.execute(queue, softmax_args);
    sums.execute(queue, sum_args);
    queue.wait();
  }
};

void add_primitives(std::vector<Arm>& arms, const Call& c, AttentionOperands& x) {
  if (c.group() > 1 || c.queries == 1) return;
  try {
    auto primitives = std::make_shared<Primitives>(c, x);
    arms.push_back({"oneDNN primitives", true, [=] { (*primitives)(); }});
  } catch (const dnnl::error& e) {
    std::fprintf(stderr, "%s: oneDNN's primitives do not serve it: %s\n", c.name, e.what());
  }
}

} // namespace

std::vector<Arm> compositions(const Call& c, AttentionOperands& x) {
  std::vector<Arm> arms;
  add_openblas(arms, c, x);
  add_dnnl_sgemm(arms, c, x);
  add_primitives(arms, c, x);
  return arms;
}
