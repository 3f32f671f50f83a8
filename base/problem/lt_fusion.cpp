#include "base/problem/lt_fusion.h"

namespace deepgen {

LtFusion fuse_lt(const Gemm& p) {
  LtFusion f;
  f.rest = p.epilogue;
  const auto take = [&](EpilogueOp op) {
    if (f.rest.empty() || f.rest.front() != op) return false;
    f.rest.erase(f.rest.begin());
    return true;
  };
  if (p.a == Type::e4m3 || p.a == Type::e5m2)
    while (take(EpilogueOp::scale_a) || take(EpilogueOp::scale_b)) f.scales = true;
  for (int i = 0; i < 2; ++i) {
    f.bias |= take(EpilogueOp::bias);
    if (p.epilogue_type() == p.d) f.residual |= take(EpilogueOp::residual);
  }
  if (take(EpilogueOp::relu))
    f.activation = LtFusion::relu;
  else if (take(EpilogueOp::gelu_tanh))
    f.activation = LtFusion::gelu_tanh;
  return f;
}

} // namespace deepgen
