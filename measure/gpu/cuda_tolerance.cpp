#include "measure/gpu/cuda_tolerance.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace deepgen::cuda {
namespace {

double sum_bound(const Gemm& p) {
  const double u = 0x1p-24, root = std::sqrt(double(p.k));
  switch (p.a) {
  case Type::f64:
    return 2 * 0x1p-53 * (8 + root);
  case Type::e4m3:
  case Type::e5m2:
    return 0x1p-14 * (8 + root / 8);
  case Type::tf32:
    return u * (8 + root) + std::min(0x1p-9, 0x1p-10 * 8 / root);
  case Type::i8:
    return 4 * u;
  default:
    return u * (8 + root);
  }
}

/// MI200: MFMA and V_DOT2 "flush subnormal input/output data to zero" (MIOpen's and PyTorch's notes).
bool flushes(const std::string& arch, Type type) { return arch == "gfx90a" && type == Type::f16; }

} // namespace

Tolerance tolerance_of(const Gemm& p, const std::string& arch) {
  Tolerance t;
  t.sum = sum_bound(p);
  t.epilogue = p.scale_type() == Type::f64 ? 0x1p-53 : 0x1p-24;
  switch (p.d) {
  case Type::f64:
    t.output = 0x1p-53, t.smallest = DBL_MIN, t.largest = DBL_MAX;
    break;
  case Type::f16:
    t.output = 0x1p-11, t.smallest = 0x1p-24, t.largest = 65504;
    break;
  case Type::bf16:
    t.output = 0x1p-8, t.smallest = FLT_MIN, t.largest = 0x1.fep127;
    break;
  case Type::i8:
  case Type::i32:
    break;
  default:
    t.output = 0x1p-24, t.smallest = FLT_MIN, t.largest = FLT_MAX;
  }
  if (flushes(arch, p.a)) t.smallest += 0x1p-10;
  return t;
}

} // namespace deepgen::cuda
