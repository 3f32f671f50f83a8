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

/// The scores where x is greater than b, or as great.
CudnnAttention::Tensor CudnnAttention::select(const Tensor& scores, CudnnPointwise compare, const Tensor& x,
                                              const Tensor& b) {
  const Tensor seen =
      pointwise(compare, CudnnType::boolean, x, {b}, between(CudnnType::boolean, scores.sizes));
  const float hidden = library_.number < kInfinite ? std::numeric_limits<float>::lowest()
                                                   : -std::numeric_limits<float>::infinity();
  return pointwise(CudnnPointwise::select, CudnnType::f32, scores, {number(hidden), seen},
                   between(CudnnType::f32, scores.sizes));
}

/// As cudnn-frontend writes the two ends of a band, whose engines look for them: row + keys - queries + right
/// >= column, in i32, and column + (left + 1 - keys + queries) > row, in f32.
CudnnAttention::Tensor CudnnAttention::masked(Tensor scores, const SlotValues& call) {
  const bool window = p_.mask == AttentionMask::window;
  const int64_t queries = p_.at_queries, keys = p_.at_keys,
                left = window ? int64_t(call[DEEPGEN_ARG_WINDOW_LEFT]) : -1,
                right = window                           ? int64_t(call[DEEPGEN_ARG_WINDOW_RIGHT])
                        : p_.mask == AttentionMask::none ? -1
                                                         : 0;
  const int64_t shift = p_.mask == AttentionMask::causal_top_left ? 0 : keys - queries;
  const CudnnType f32 = CudnnType::f32, i32 = CudnnType::i32;
  const auto index = [&](int64_t axis) {
    return pointwise(CudnnPointwise::index, f32, scores, {}, between(i32, scores.sizes), axis);
  };
  const auto moved = [&](CudnnPointwise how, const Tensor& x, int64_t by) {
    return pointwise(how, i32, x, {scalar(i32, uint32_t(int32_t(by)))}, between(i32, x.sizes));
  };
  if (right >= 0 && shift + right < keys - 1) { // else the first query sees the last key
    Tensor row = index(2);
    const Tensor column = index(3);
    if (shift) row = moved(CudnnPointwise::sub, moved(CudnnPointwise::add, row, keys), queries);
    if (right) row = moved(CudnnPointwise::add, row, right);
    scores = select(scores, CudnnPointwise::greater_or_equal, row, column);
  }
  if (left >= 0 && queries - 1 + shift > left) { // else the last query sees the first key
    const Tensor row = index(2), column = index(3);
    const Tensor behind = pointwise(CudnnPointwise::add, f32, column, {number(float(left + 1 - shift))},
                                    between(f32, scores.sizes));
    scores = select(scores, CudnnPointwise::greater, behind, row);
  }
  return scores;
}

} // namespace deepgen::cuda
