#include "measure/vendor/cpu/vendor_attention.h"

#include "measure/values/clones.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace deepgen {
namespace {

constexpr int64_t kChains = 64; ///< sums side by side, which a compiler makes vectors of

inline float power_of_e(float x) {
  constexpr float kMagic = 12582912;
  const float n = (x * 1.44269504f + kMagic) - kMagic, r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
  float y = 0.00139485808f * r + 0.00838110929f;
  y = y * r + 0.0416662407f, y = y * r + 0.166663257f, y = y * r + 0.500000008f, y = y * r + 1.0f,
  y = y * r + 1.0f;
  return y * std::bit_cast<float>((int32_t(n) + 127) << 23);
}

/// One chunk of a row becomes exponentials, added to `sums`.
inline void exponentials(float* row, int64_t count, float most, float* sums) {
  for (int64_t i = 0; i < count; ++i) {
    const float x = row[i] - most;
    row[i] = power_of_e(x > -87 ? x : -87);
    sums[i] += row[i];
  }
}

DEEPGEN_CLONES void softmax_of(float* row, int64_t count) {
  const int64_t whole = count / kChains * kChains;
  float greatest[kChains], sums[kChains] = {};
  std::fill(greatest, greatest + kChains, row[0]);
  for (int64_t j = 0; j < whole; j += kChains)
    for (int64_t i = 0; i < kChains; ++i) greatest[i] = row[j + i] > greatest[i] ? row[j + i] : greatest[i];
  float most = *std::max_element(greatest, greatest + kChains), sum = 0;
  for (int64_t j = whole; j < count; ++j) most = row[j] > most ? row[j] : most;
  for (int64_t j = 0; j < whole; j += kChains) exponentials(row + j, kChains, most, sums);
  exponentials(row + whole, count - whole, most, sums);
  for (float x : sums) sum += x;
  const float factor = 1 / sum;
  for (int64_t j = 0; j < count; ++j) row[j] *= factor;
}

} // namespace

void masked_softmax(float* scores, int64_t queries, int64_t keys, AttentionMask mask) {
  for (int64_t t = 0; t < queries; ++t) {
    float* row = scores + t * keys;
    int64_t count = keys;
    if (mask == AttentionMask::causal) count = t + keys - queries + 1;
    if (mask == AttentionMask::causal_top_left) count = t + 1;
    count = std::clamp<int64_t>(count, 0, keys);
    if (count) softmax_of(row, count);
    std::fill(row + count, row + keys, 0.0f);
  }
}

std::string VendorAttention::why_not(const Attention& p) {
  if (p.q != Type::f32 || p.kv != Type::f32 || p.out != Type::f32)
    return "no vendor baseline: OpenBLAS has no products of these types";
  if (p.softcap || p.sink || p.bias) return "no vendor baseline of a softmax with softcap, sink or bias";
  if (p.paged()) return "no vendor baseline: OpenBLAS multiplies no matrix whose rows lie in pages";
  return "";
}

VendorAttention::VendorAttention(const Vendor& vendor, const Attention& p, const AttentionCall& call)
    : problem_(p), shape_(*call.shape), scores_(size_t(shape_.queries * shape_.keys)) {
  Gemm by_keys, by_values;
  by_keys.m = by_values.m = shape_.queries, by_keys.n = by_values.k = shape_.keys;
  by_keys.k = p.head_dim, by_values.n = p.value_dim, by_keys.layout = Layout::nt;
  complete(by_keys), complete(by_values);
  const auto at = [](const void* data, const TokenLayout& layout, int64_t b, int64_t h) {
    return static_cast<const float*>(data) + layout.row(b, 0, h) * layout.ld() + layout.column(h);
  };
  for (int64_t b = 0; b < shape_.batch; ++b)
    for (int64_t h = 0; h < p.heads; ++h) {
      CallBuffers x, y;
      x.a = at(call.q, *call.q_layout, b, h), x.lda = call.q_layout->ld();
      x.b = at(call.key, *call.key_layout, b, h / p.group()), x.ldb = call.key_layout->ld();
      x.d = scores_.data(), x.ldd = x.ldc = shape_.keys, x.alpha = 1 / std::sqrt(double(p.head_dim));
      y.a = scores_.data(), y.lda = shape_.keys;
      y.b = at(call.value, *call.value_layout, b, h / p.group()), y.ldb = call.value_layout->ld();
      y.d = const_cast<float*>(at(call.out, *call.out_layout, b, h)), y.ldd = y.ldc = call.out_layout->ld();
      products_.push_back(vendor.prepare(by_keys, x)), products_.push_back(vendor.prepare(by_values, y));
    }
}

void VendorAttention::run() {
  for (size_t i = 0; i < products_.size(); i += 2) {
    products_[i]();
    masked_softmax(scores_.data(), shape_.queries, shape_.keys, problem_.mask);
    products_[i + 1]();
  }
}

} // namespace deepgen
