#include "measure/values/rows_inputs.h"

#include "measure/values/stored_values.h"

#include <cmath>
#include <limits>

namespace deepgen {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity(),
                 kNaN = std::numeric_limits<double>::quiet_NaN();

template <typename Value>
PageBuffer filled(Type type, int64_t count, int colour, Value value) {
  PageBuffer buffer(size_t(count * size_of(type)), colour, Begins::as_malloc);
  for (int64_t i = 0; i < count; ++i) encode(type, value(i), buffer.data(), i);
  return buffer;
}

} // namespace

double flavoured(RowFlavour flavour, Type type, int64_t n, int64_t columns, double y) {
  switch (flavour) {
  case RowFlavour::peak_last:
    return n + 1 == columns ? 120 : 4 * y;
  case RowFlavour::peak_first:
    return n == 0 ? 120 : 4 * y;
  case RowFlavour::far_mean:
    return 1000 + 1.7 * y;
  case RowFlavour::step:
    return (2 * n < columns ? 1000 : 0) + 1.7 * y;
  case RowFlavour::wide:
    return 10000 * y;
  case RowFlavour::zeros:
    return 0;
  case RowFlavour::constant:
    return 3;
  case RowFlavour::holes:
    return y < -0.5 ? -kNone : 4 * y;
  case RowFlavour::no_weight:
    return -kNone;
  case RowFlavour::nan:
    return n + 1 == columns ? kNaN : 4 * y;
  case RowFlavour::only_nan:
    return n % 4 == 1 || columns == 1 ? kNaN : -kNone;
  case RowFlavour::infinity:
    return n == 0 ? kNone : 4 * y;
  case RowFlavour::tiny:
    return y * (type == Type::f16 ? 0x1p-16 : 0x1p-100);
  default:
    return 4 * y;
  }
}

SlotValues values_of(const RowsCall& call) {
  SlotValues values = {};
  values[DEEPGEN_ARG_X] = argument(call.x);
  values[DEEPGEN_ARG_LDX] = uint64_t(call.ldx);
  values[DEEPGEN_ARG_RESIDUAL] = argument(call.residual);
  values[DEEPGEN_ARG_LD_RESIDUAL] = uint64_t(call.ld_residual);
  values[DEEPGEN_ARG_SCALE] = argument(call.scale);
  values[DEEPGEN_ARG_BIAS] = argument(call.bias);
  values[DEEPGEN_ARG_D] = argument(call.d);
  values[DEEPGEN_ARG_LDD] = uint64_t(call.ldd);
  values[DEEPGEN_ARG_RESIDUAL_OUT] = argument(call.residual_out);
  values[DEEPGEN_ARG_LD_RESIDUAL_OUT] = uint64_t(call.ld_residual_out);
  values[DEEPGEN_ARG_ROW_SCALES] = argument(call.row_scales);
  values[DEEPGEN_ARG_EPSILON] = argument(call.epsilon, Type::f32);
  values[DEEPGEN_ARG_WORKSPACE] = argument(call.workspace);
  return values;
}

RowsInputs::RowsInputs(const Rows& p, uint64_t seed, int first) {
  constexpr auto kFlavours = int64_t(RowFlavour::count);
  x = filled(p.x, p.m * p.n, 1, [&](int64_t i) {
    const auto flavour = first < 0 ? RowFlavour::plain : RowFlavour((i / p.n + first) % kFlavours);
    return flavoured(flavour, p.x, i % p.n, p.n, uniform(4 * seed, uint64_t(i)));
  });
  const auto plain = [&](uint64_t stream) {
    return [=](int64_t i) { return uniform(4 * seed + stream, uint64_t(i)); };
  };
  if (p.residual) residual = filled(p.x, p.m * p.n, 2, plain(1));
  if (p.scale)
    scale = filled(p.x, p.n, 3, [&](int64_t i) {
      const double y = uniform(4 * seed + 2, uint64_t(i));
      return std::exp2(2 * std::fabs(y) - 1) * (y < 0 ? -1 : 1);
    });
  if (p.bias) bias = filled(p.x, p.n, 4, plain(3));
}

} // namespace deepgen
