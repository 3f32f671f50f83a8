#include "measure/values/attention/attention_products.h"

#include "measure/values/clones.h"

namespace deepgen {
namespace {

// Of no greater alignment than an element's, so that any array of f64 is one of vectors.
constexpr int64_t kProductLanes = 8;
typedef double ProductVector __attribute__((vector_size(8 * kProductLanes), aligned(8), may_alias));
typedef int64_t ProductBits __attribute__((vector_size(8 * kProductLanes), aligned(8), may_alias));

[[gnu::always_inline]] inline const ProductVector& lanes_at(const double* x) {
  return *reinterpret_cast<const ProductVector*>(x);
}
[[gnu::always_inline]] inline ProductVector& lanes_at(double* x) {
  return *reinterpret_cast<ProductVector*>(x);
}

} // namespace

DEEPGEN_CLONES void products_with_panel(const double* q, const double* panel, int64_t dimension,
                                        double* products) {
  static_assert(panel_keys == 4 * kProductLanes);
  ProductVector a = {}, b = {}, c = {}, e = {};
  for (int64_t d = 0; d < dimension; ++d, panel += panel_keys) {
    a += q[d] * lanes_at(panel), b += q[d] * lanes_at(panel + kProductLanes);
    c += q[d] * lanes_at(panel + 2 * kProductLanes), e += q[d] * lanes_at(panel + 3 * kProductLanes);
  }
  lanes_at(products) = a, lanes_at(products + kProductLanes) = b;
  lanes_at(products + 2 * kProductLanes) = c, lanes_at(products + 3 * kProductLanes) = e;
}

DEEPGEN_CLONES void add_weighed(const double* weights, const double* errors, int64_t count,
                                const double* values, int64_t ld, double* sums, double* sums_of_errors) {
  static_assert(value_step == 2 * kProductLanes);
  const ProductBits magnitude = INT64_MAX - ProductBits{};
  for (int64_t d = 0; d < ld; d += value_step) { // two at a time hide the latency of their sums
    ProductVector sum = lanes_at(sums + d), sum2 = lanes_at(sums + d + kProductLanes);
    ProductVector error = lanes_at(sums_of_errors + d), error2 = lanes_at(sums_of_errors + d + kProductLanes);
    for (int64_t j = 0; j < count; ++j) {
      const double* row = values + j * ld + d;
      const ProductVector value = lanes_at(row), value2 = lanes_at(row + kProductLanes);
      sum += weights[j] * value, sum2 += weights[j] * value2;
      error += errors[j] * ProductVector(ProductBits(value) & magnitude);
      error2 += errors[j] * ProductVector(ProductBits(value2) & magnitude);
    }
    lanes_at(sums + d) = sum, lanes_at(sums + d + kProductLanes) = sum2;
    lanes_at(sums_of_errors + d) = error, lanes_at(sums_of_errors + d + kProductLanes) = error2;
  }
}

} // namespace deepgen
