// What cuDNN's graph of attention has more where Q, K and V are 8-bit floats. As cudnn-frontend writes it:
// numbers in device memory scale both products' operands, the weights and out; and the greatest magnitudes of
// weights and of out are outputs.
#include "measure/vendor/gpu/cudnn_attention.h"

#include <cmath>

namespace deepgen::cuda {
namespace {

/// The scale of weights in cudnn-frontend's own tests (test/python/sdpa: a quarter of 2^8, the greatest power
/// of two of e4m3). Their reference says why there is room: the maximum that exponentials refer to may lag
/// behind a row's, so that newer kernels scale by 2^-4 more.
constexpr int kWeightExponent = 6, kLagExponent = 4;

} // namespace

std::vector<Type> cudnn_outs(const Attention& p) {
  return p.q == Type::e4m3 ? std::vector<Type>{p.out, Type::e4m3} : std::vector<Type>{p.out};
}

AttentionArithmetic cudnn_arithmetic(const Attention& p, const std::string& arch) {
  AttentionArithmetic how = AttentionArithmetic::of(p, arch);
  how.greatest_weight = kWeightExponent - kLagExponent;
  return how;
}

CudnnAttention::Tensor CudnnAttention::number_on_device(float x) {
  const Tensor t = tensor(CudnnType::f32, {1, 1, 1, 1}, {1, 1, 1, 1}, false, false);
  numbers_.push_back({int64_t(t.index) + 1, Memory(sizeof x)});
  check(driver()->cuMemcpyHtoD(numbers_.back().memory.address(), &x, sizeof x), "copying to the device");
  return t;
}

CudnnAttention::Tensor CudnnAttention::times(const Tensor& x, float scale, const Tensor& y) {
  return pointwise(CudnnPointwise::mul, CudnnType::f32, x, {number_on_device(scale)}, y);
}

/// `a`, `b`: what the operands' scales leave to divide by.
CudnnAttention::Tensor CudnnAttention::descaled(const Tensor& product, float a, float b) {
  const auto like = [&] { return between(CudnnType::f32, product.sizes); };
  return times(times(product, a, like()), b, like());
}

void CudnnAttention::narrow_product(const Tensor& weights, const Tensor& v, const Tensor& out) {
  const float scale = std::ldexp(1.0f, kWeightExponent);
  reduce(CudnnReduction::max_magnitude, weights, number_on_device(0));
  const Tensor narrow = times(weights, scale, between(CudnnType::e4m3, weights.sizes));
  const Tensor sums = descaled(
      product(narrow, v, between(CudnnType::f32, out.sizes), CudnnAttribute::matmul_depth), 1 / scale, 1);
  times(sums, 1, out); // averages of values, which need no scale
  reduce(CudnnReduction::max_magnitude, sums, number_on_device(0));
}

} // namespace deepgen::cuda
