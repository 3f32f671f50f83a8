#include "templates/core/operator_template.h"

#include "mlir/IR/BuiltinOps.h"

#include <type_traits>

namespace deepgen {

template <typename Operator>
Kernel OperatorTemplate<Operator>::emit(mlir::ModuleOp module, const Problem& p, const std::string& arch,
                                        const Config& config) const {
  return emit(module, p.as<Operator>(), arch, config);
}

template <typename Operator>
std::string OperatorTemplate<Operator>::why_unserved([[maybe_unused]] const Operator& p) const {
  if constexpr (std::is_same_v<Operator, Gemm>) {
    if (p.packed_b && !serves_packed_b())
      return name() + " has no kernels that take B packed: use arch cpu, or B as it is stored";
    if (p.threads > 1 && !serves_threads())
      return name() + " has no kernels that threads of the CPU share: use arch cpu, or leave out THREADS";
    for (size_t i = 0; i < size_count; ++i)
      if (p.ranged(Size(i)) && !serves_range(Size(i)))
        return name() + " has no kernels of a range of " + size_names[i] + ": use a fixed size";
  }
  if constexpr (std::is_same_v<Operator, Attention>) {
    if (p.paged() && !serves_pages())
      return name() + " has no kernels that read keys and values by pages: leave out PAGED";
    if (p.splits > 1 && !serves_splits())
      return name() + " has no kernels that share out an entry's keys: leave out SPLIT_KEYS";
    if (p.bias && !serves_bias())
      return name() + " has no kernels that add a bias: cpu_attention, hopper_attention, mma_attention and "
                      "mfma_attention do";
  }
  return "";
}

template class OperatorTemplate<Gemm>;
template class OperatorTemplate<Rows>;
template class OperatorTemplate<Attention>;

} // namespace deepgen
