// Attention: what a transformer's heads do between their matrix products, fused. A small value with one
// canonical text form.
#pragma once

#include "base/problem/rate.h"
#include "base/problem/size.h"
#include "base/problem/types.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace deepgen {

/// Which keys a query sees. Let t be a query's number in its batch entry, and shift = keys - queries of that
/// entry.
enum class AttentionMask {
  none,            ///< all
  causal,          ///< keys up to t + shift: the last query sees the last key
  causal_top_left, ///< keys up to t: the first query sees the first key
  window           ///< keys from t + shift - left to t + shift + right, both of which a call passes
};

/// out[b,t,h,:] = sum over j of p[j] V[b,j,g,:], where p is the softmax of s[j] = scale * Q[b,t,h,:] *
/// K[b,j,g,:] over the keys j that the mask lets query t see, and g = h / (heads / kv_heads). With softcap,
/// softcap * tanh(s / softcap) takes the place of s where a call's softcap is not 0. With sink, the sum of
/// exponentials has exp(sink[h]) beside those of keys. With bias, bias[b,h,t,j] is added to s[j] then, before
/// the mask; where that is -inf, the key is hidden. lse[b,h,t] is the logarithm of that sum. A row that
/// sees no key has out 0; its lse is -inf, or sink[h]. A call passes the batch, the most queries and keys of
/// an entry, and strides; with varlen also where in Q, K, V and out each entry begins, and how many keys it
/// has. Nothing behind an entry's last key is read into a result. All is computed in f32 and rounded once
/// (e4m3: docs/attention.md). With pages, K and V are pages of page_size tokens in any order: key j of entry
/// b is in page table[b, j / page_size], in its place j % page_size; a call passes it, and each entry's keys.
struct Attention {
  int64_t heads = 1, kv_heads = 1;       ///< of Q and out; of K and V
  int64_t head_dim = 64, value_dim = 64; ///< elements of a row of Q and K; of V and out
  Type q = Type::f32, kv = Type::f32, out = Type::f32;
  AttentionMask mask = AttentionMask::none;
  int64_t queries = 1, keys = 1; ///< of one batch entry, at most
  bool varlen = false, lse = false, softcap = false, sink = false;
  std::optional<Type> bias; ///< of what is added to scores: f32, f16 or bf16
  int64_t page_size = 0;    ///< tokens of a page of K and V, a power of two; 0: there are no pages
  int64_t splits = 0; ///< parts of an entry's keys that blocks of a GPU share out; 0: as the search finds
  /// The call that it is tuned for; of several, that of the most queries times keys, of all entries.
  int64_t at_batch = 1, at_queries = 1, at_keys = 1;
  /// With the mask window: what that call, or each of several, passes; -1: no end on that side.
  int64_t at_left = -1, at_right = -1;
  /// Several calls that its kernels share: by Size, queries are m and keys are n. At least two, each once, by
  /// their products. Empty: it is tuned for the one above.
  std::vector<Sizes> calls;
  bool one_call = false; ///< one of several: calls say what its kernels have to serve beside it; see at()

  bool operator==(const Attention&) const = default;

  bool paged() const { return page_size > 0; }
  bool biased() const { return bias.has_value(); }
  /// Whether it is tuned for a window that ends somewhere.
  bool windowed() const { return at_left >= 0 || at_right >= 0; }
  /// Whether several kernels share the calls.
  bool ranged() const { return !calls.empty() && !one_call; }
  /// Of the largest call.
  Sizes sizes() const;
  /// Whether a call may pass these; 0 is legal at every call.
  bool takes(const Sizes&) const;
  /// The same function, tuned for this call; of several, kernels of either are the others', too. Its key is
  /// that of a function that is tuned for this call alone. Throws Error when a size is 0, or beyond its own.
  Attention at(const Sizes&) const;
  /// A problem whose kernels have to serve this call alone, without a window.
  Attention alone(int64_t batch, int64_t queries, int64_t keys) const;
  int64_t group() const { return heads / kv_heads; } ///< heads of Q that share one of K and V
  /// Of the call that it is tuned for: the keys that a query sees, from the first to before the second.
  std::pair<int64_t, int64_t> seen_keys(int64_t query) const;
  /// Operations of both products in the call that it is tuned for; what the mask hides is not counted.
  double flops() const;
  /// Keys before or behind all windows are not read; of a bias: one for all entries, as it is timed.
  double bytes() const;
  Rate rate() const { return {flops(), "GFLOP/s"}; }
  double work() const { return flops(); }
  /// The same of the largest call, without a mask.
  double most_work() const;

  /// The canonical line, e.g. "attention heads=32 kv_heads=8 head_dim=128 value_dim=128 q=bf16 kv=bf16
  /// out=bf16 mask=causal queries=8192 keys=131072 options=varlen+lse at_batch=1 at_queries=4096
  /// at_keys=4096"; behind options "bias=f32" where there is one, "page=64" where there are pages, then
  /// "splits=8" where the number is fixed, and "window=127,0" where it is tuned for one. Several calls are in
  /// place of the last three: "at=1x1x4096+8x1x4096", each a batch, queries and keys, ascending by these.
  std::string key() const;
  /// The inverse of key(); throws Error naming the offending field.
  static Attention parse(std::string_view key);
};

inline constexpr int64_t most_attention_batch = 65536, most_attention_heads = 1024, most_head_dim = 512,
                         most_tokens = int64_t(1) << 24, most_page_size = 1024, most_splits = 64;
inline constexpr size_t most_attention_calls = 32; ///< that one function is tuned for

/// A bias of a greater magnitude counts as infinite: the greatest f32 times log 2. So the lowest f32 and bf16
/// hide keys.
inline constexpr double most_bias = 2.3586574e38;

std::string to_string(AttentionMask);

/// Throws Error when a size is out of range, heads are no multiple of kv_heads, the types are not served
/// (f32, f16 and bf16 each, or e4m3 of Q, K and V alike), a page or the number of splits is no power of two,
/// a window is out of range or another mask's, or a call that it is tuned for is beyond queries or keys.
void validate(const Attention&);

} // namespace deepgen
