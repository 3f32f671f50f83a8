#include "workload/estimate.h"

#include <algorithm>

namespace deepgen {
namespace {

constexpr double kLaunch = 3e-6, kBytesPerSecond = 3e12;

double operations_per_second(Type type) {
  switch (type) {
  case Type::f64:
  case Type::f32:
    return 5e13;
  case Type::tf32:
    return 3e14;
  case Type::f16:
  case Type::bf16:
    return 6e14;
  default:
    return 1.2e15;
  }
}

} // namespace

double estimated_seconds(const Problem& problem) {
  const Gemm* gemm = std::get_if<Gemm>(&problem.which());
  const double rate = operations_per_second(gemm ? gemm->a : Type::f32);
  return kLaunch + std::max(problem.flops() / rate, problem.bytes() / kBytesPerSecond);
}

double estimated_seconds(double flops) {
  return flops > 0 ? kLaunch + flops / operations_per_second(Type::bf16) : 0;
}

} // namespace deepgen
