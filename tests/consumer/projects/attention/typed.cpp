// The typed C++ functions, and what the compiler can check.
#include <kernels.h>

#include <cmath>
#include <cstdio>
#include <vector>

static_assert(kernels::attn_sizes::heads == 4 && kernels::attn_sizes::kv_heads == 2);
static_assert(kernels::attn_sizes::most_queries == 256 && kernels::near_sizes::value_dim == 40);

int main() {
  constexpr int heads = kernels::attn_sizes::heads, dim = kernels::attn_sizes::head_dim;
  // One query that sees one key has that key's value, whatever the scores.
  std::vector<float> q(heads * dim, 3), k(2 * dim, 2), v(2 * dim), out(heads * dim), lse(heads);
  for (size_t i = 0; i < v.size(); ++i) v[i] = float(i);
  if (kernels::attn(1, 1, 1, q.data(), k.data(), v.data(), out.data(), lse.data()) != DEEPGEN_OK) return 1;
  for (int h = 0; h < heads; ++h) {
    for (int d = 0; d < dim; ++d)
      if (out[size_t(h * dim + d)] != v[size_t(h / 2 * dim + d)]) return std::printf("%d %d\n", h, d), 1;
    if (std::fabs(lse[size_t(h)] - 6 * std::sqrt(float(dim))) > 1e-3f)
      return std::printf("lse %g\n", double(lse[0])), 1;
  }
  std::vector<float> bias(heads, 5); // of one query and one key
  if (kernels::biased(1, 1, 1, q.data(), k.data(), v.data(), bias.data(), out.data(), lse.data()) !=
      DEEPGEN_OK)
    return 1;
  if (std::fabs(lse[0] - 5 - 6 * std::sqrt(float(dim))) > 1e-3f)
    return std::printf("biased lse %g\n", double(lse[0])), 1;
  deepgen_attention_args args;
  args.q = q.data(), args.key = k.data(), args.value = v.data(), args.out = out.data(), args.lse = lse.data();
  args.max_queries = 1, args.max_keys = 0; // no keys
  if (kernels::attn(args) != DEEPGEN_OK) return 1;
  for (float x : out)
    if (x != 0) return 1;
  if (!(std::isinf(lse[0]) && lse[0] < 0)) return 1;
  std::puts("ok");
  return 0;
}
