// What cuDNN's graph of attention does to scores between their product and the softmax.
#include "measure/vendor/gpu/cudnn_attention.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace deepgen::cuda {
namespace {

constexpr size_t kInfinite = 91000; ///< the version from which a masked score is -inf, not the lowest f32

} // namespace

/// Of calls with a softcap.
CudnnAttention::Tensor CudnnAttention::capped(const Tensor& scores, const SlotValues& call) {
  const auto bits = uint32_t(call[DEEPGEN_ARG_SOFTCAP]);
  if (!p_.softcap || std::bit_cast<float>(bits) == 0) return scores;
  const CudnnType f32 = CudnnType::f32;
  const Tensor cap = scalar(f32, bits);
  const auto like = [&] { return between(f32, scores.sizes); };
  const Tensor shares = pointwise(CudnnPointwise::div, f32, scores, {cap}, like());
  const Tensor bounded = pointwise(CudnnPointwise::tanh, f32, shares, {}, like());
  return pointwise(CudnnPointwise::mul, f32, bounded, {cap}, like());
}

/// A stride of 0 is of a bias that is one for all.
CudnnAttention::Tensor CudnnAttention::biased(const Tensor& scores, const SlotValues& call) {
  if (!p_.bias) return scores;
  const int64_t query = int64_t(call[DEEPGEN_ARG_BIAS_QUERY]), head = int64_t(call[DEEPGEN_ARG_BIAS_HEAD]),
                entry = int64_t(call[DEEPGEN_ARG_BIAS_BATCH]);
  const Sizes4& all = scores.sizes;
  const Sizes4 sizes = {entry ? all[0] : 1, head ? all[1] : 1, query ? all[2] : 1, all[3]};
  const int64_t row = query ? query : all[3], plane = head ? head : row * sizes[2];
  const Tensor bias =
      operand(DEEPGEN_ARG_BIAS, type_of(*p_.bias), sizes, {entry ? entry : plane * sizes[1], plane, row, 1});
  return pointwise(CudnnPointwise::add, CudnnType::f32, scores, {bias}, between(CudnnType::f32, all));
}

CudnnAttention::Tensor CudnnAttention::index(const Tensor& scores, int64_t axis) {
  return pointwise(CudnnPointwise::index, CudnnType::f32, scores, {}, between(CudnnType::i32, scores.sizes),
                   axis);
}

CudnnAttention::Tensor CudnnAttention::compared(CudnnPointwise how, const Tensor& x, const Tensor& b,
                                                const Sizes4& sizes) {
  return pointwise(how, CudnnType::boolean, x, {b}, between(CudnnType::boolean, sizes));
}

/// The scores that are seen.
CudnnAttention::Tensor CudnnAttention::select(const Tensor& scores, const Tensor& seen) {
  const float hidden = library_.number < kInfinite ? std::numeric_limits<float>::lowest()
                                                   : -std::numeric_limits<float>::infinity();
  return pointwise(CudnnPointwise::select, CudnnType::f32, scores, {number(hidden), seen},
                   between(CudnnType::f32, scores.sizes));
}

/// As cudnn-frontend writes the two ends of a band, whose engines look for them: row + keys - queries + right
/// >= column, in i32, and behind() > row. Where entries have lengths, these are the keys and queries.
CudnnAttention::Tensor CudnnAttention::masked(Tensor scores, const SlotValues& call) {
  const bool window = p_.mask == AttentionMask::window;
  const int64_t queries = p_.at_queries, keys = p_.at_keys,
                left = window ? int64_t(call[DEEPGEN_ARG_WINDOW_LEFT]) : -1,
                right = window                           ? int64_t(call[DEEPGEN_ARG_WINDOW_RIGHT])
                        : p_.mask == AttentionMask::none ? -1
                                                         : 0;
  const int64_t shift = p_.mask == AttentionMask::causal_top_left ? 0 : keys - queries;
  const CudnnType i32 = CudnnType::i32;
  const auto moved = [&](CudnnPointwise how, const Tensor& x, const Tensor& by) {
    return pointwise(how, i32, x, {by}, between(i32, x.sizes));
  };
  const auto count = [&](int64_t x) { return scalar(i32, uint32_t(int32_t(x))); };
  if (right >= 0 && shift + right < keys - 1) { // else the first query sees the last key
    Tensor row = index(scores, 2);
    const Tensor column = index(scores, 3);
    if (shift) {
      row = moved(CudnnPointwise::add, row, lengths_ ? lengths_->keys : count(keys));
      row = moved(CudnnPointwise::sub, row, lengths_ ? lengths_->queries : count(queries));
    }
    if (right) row = moved(CudnnPointwise::add, row, count(right));
    scores = select(scores, compared(CudnnPointwise::greater_or_equal, row, column, scores.sizes));
  }
  if (left >= 0 && queries - 1 + shift > left) { // else the last query sees the first key
    const Tensor row = index(scores, 2), column = index(scores, 3);
    scores =
        select(scores, compared(CudnnPointwise::greater, behind(column, left, shift), row, scores.sizes));
  }
  return scores;
}

/// column + (left + 1 - keys + queries), in f32; in i32 where entries have lengths.
CudnnAttention::Tensor CudnnAttention::behind(const Tensor& column, int64_t left, int64_t shift) {
  const CudnnType type = lengths_ ? CudnnType::i32 : CudnnType::f32;
  const auto moved = [&](CudnnPointwise how, const Tensor& x, const Tensor& by) {
    return pointwise(how, type, x, {by}, between(type, x.sizes));
  };
  if (!lengths_) return moved(CudnnPointwise::add, column, number(float(left + 1 - shift)));
  Tensor at = moved(CudnnPointwise::add, column, scalar(type, uint32_t(left + 1)));
  at = moved(CudnnPointwise::sub, at, lengths_->keys);
  return moved(CudnnPointwise::add, at, lengths_->queries);
}

} // namespace deepgen::cuda
